use tenon_sdk::eval;
use tenon_sdk::eval::{Evaluation, Subject, summarize};

#[eval]
async fn judge(_subject: Subject) -> Evaluation {
    summarize(Vec::new())
}

fn main() {}
