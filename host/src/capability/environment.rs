//! `environment`: variables of the host's environment, for the guest's own standard library. Values
//! are their names.

use tenon_config::grant::{ENVIRONMENT, Grants};
use tenon_config::host_environment::HostEnvironment;

/// The variables that were granted and that are set to a text.
pub(crate) fn of(grants: &Grants, host_environment: &HostEnvironment) -> Vec<(String, String)> {
    let variable =
        |name: &str| Some((name.to_string(), host_environment.variable(name)?.to_string()));
    grants.names(ENVIRONMENT).filter_map(variable).collect()
}
