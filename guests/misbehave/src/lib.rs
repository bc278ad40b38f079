//! A plugin that goes wrong in the way its caller asks for.
