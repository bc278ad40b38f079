use tenon_sdk::eval;
use tenon_sdk::eval::Subject;

/// Judges.
#[eval]
async fn judge(_subject: Subject) -> f64 {
    1.0
}

fn main() {}
