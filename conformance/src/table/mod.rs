//! The table: one file for each capability.

mod filesystem;
mod host_functions;
mod limits;
mod network;
mod nothing;

use crate::row::Row;

/// All rows, in the order of reports.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = nothing::rows();
    rows.extend(filesystem::rows());
    rows.extend(network::rows());
    rows.extend(host_functions::rows());
    rows.extend(limits::rows());
    rows
}
