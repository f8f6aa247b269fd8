//! The product as its users meet it.
