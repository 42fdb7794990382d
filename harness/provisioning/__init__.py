"""Finds, builds and installs the programs that tfb runs: tools, Debian packages, Rust crates, a container engine."""
