//! {{description}}.

use tenon_sdk::{Error, Result, plugin, resource};

plugin!(resources: [all, planet], completions: [planet]);

const PLANETS: [&str; 8] =
    ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"];

/// All planets, a line each.
#[resource("planets://all")]
pub async fn all() -> String {
    PLANETS.join("\n")
}

/// One planet, by its number from the sun.
#[resource("planets://{number}")]
pub async fn planet(
    #[complete("1", "2", "3", "4", "5", "6", "7", "8")] number: usize,
) -> Result<String> {
    match number.checked_sub(1).and_then(|index| PLANETS.get(index)) {
        Some(name) => Ok(name.to_string()),
        None => Err(Error::not_found(format!("there is no planet {number}")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::ErrorCode;
    use tenon_sdk::resource::ResourceBody;
    use tenon_sdk::testing::Host;

    #[test]
    fn a_planet_is_read_by_its_number() {
        // As the host reads it: by its URI.
        let read = Host::new().read_resource::<planet>("planets://3").unwrap();
        assert_eq!(read[0].body, ResourceBody::Text("Earth".into()));
    }

    #[test]
    fn a_number_without_a_planet_is_not_found() {
        let error = Host::new().read_resource::<planet>("planets://9").unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
    }
}
