//! What is measured while the command serves, for Prometheus.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::fmt;
use std::time::Duration;
use tenon_serve::MetricsSource;
use tokio::task::JoinHandle;

use crate::error::Error;

/// The ends of the buckets in which durations are counted, in seconds.
const BUCKETS: [f64; 12] =
    [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// How often what was measured is summed up, so that it does not grow while nobody reads it.
const UPKEEP: Duration = Duration::from_secs(5);

/// What is measured in this process.
pub(crate) struct PrometheusExporter {
    handle: PrometheusHandle,
    upkeep: JoinHandle<()>,
}

impl PrometheusExporter {
    /// Measures from now on. It is to be called once, and before plugins are loaded.
    pub(crate) fn install() -> Result<Self, Error> {
        let failed =
            |error: &dyn fmt::Display| Error::Host(format!("nothing can be measured: {error}"));
        let durations = Matcher::Suffix("_seconds".into());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(durations, &BUCKETS);
        let builder = builder.map_err(|error| failed(&error))?;
        let handle = builder.install_recorder().map_err(|error| failed(&error))?;
        let of_upkeep = handle.clone();
        let upkeep = tokio::spawn(async move {
            loop {
                tokio::time::sleep(UPKEEP).await;
                of_upkeep.run_upkeep();
            }
        });
        Ok(Self { handle, upkeep })
    }
}

impl fmt::Debug for PrometheusExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrometheusExporter")
    }
}

impl Drop for PrometheusExporter {
    fn drop(&mut self) {
        self.upkeep.abort();
    }
}

impl MetricsSource for PrometheusExporter {
    fn render(&self) -> String {
        self.handle.render()
    }
}
