//! The platform files that come with xpline.

/// A file of the folder `platforms`, in the program itself.
pub struct Builtin {
    pub name: &'static str,
    pub file: &'static str,
    pub text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            file: concat!("platforms/", $name, ".toml"),
            text: include_str!(concat!("../../../../platforms/", $name, ".toml")),
        }),*]
    };
}

/// Platforms to run on.
pub const PLATFORMS: &[Builtin] = builtin![
    "optane",
    "optane-ni",
    "dram",
    "optane-remote",
    "dram-remote",
    "memory-mode",
    "pmep",
    "optane-ni-sec23",
    "optane-2018",
    "optane-2dimms",
    "optane-4dimms",
    "optane-128",
    "optane-512",
    "optane-200",
    "ddr5",
    "epyc-9005",
    "hbm",
    "cxl-dram",
    "cxl-hybrid",
];

/// Bases that platforms extend.
pub const BASES: &[Builtin] = builtin!["cascade-lake", "sapphire-rapids"];

pub fn find(name: &str) -> Option<&'static Builtin> {
    PLATFORMS.iter().chain(BASES).find(|builtin| builtin.name == name)
}
