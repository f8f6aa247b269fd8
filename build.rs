//! Links everything except libc statically.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        // The unwinder; otherwise libgcc_s.so is needed.
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
