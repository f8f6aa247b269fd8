//! The binary shall stand alone: no dynamic library but libc.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        // The unwinder, which would otherwise come from libgcc_s.so.
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
