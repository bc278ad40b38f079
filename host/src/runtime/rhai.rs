pub(crate) struct RhaiPlugin;
