pub struct Builtin;
