//! The console: a page that shows and operates a fleet in a browser.
