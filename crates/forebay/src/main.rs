//! forebay
fn main(){}
