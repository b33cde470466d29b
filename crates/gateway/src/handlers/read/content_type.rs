//! The header lines for an object's content type. The client that posted the object chose its bytes and type, and a browser would show a
//! page as one of this server.

/// The lines for an object of this type. Content that a browser would show as a page, or pass to a program that does, is sent as an
/// attachment. Other pages can still embed it as an image.
pub(super) fn shown(content_type: &str) -> String {
    let disposition = if is_harmless(content_type) { "" } else { "content-disposition: attachment\r\n" };
    format!("content-type: {content_type}\r\n{disposition}")
}

/// Whether a browser runs nothing of this type.
fn is_harmless(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-.".contains(&byte);
    match essence.split_once('/').filter(|_| essence.bytes().all(is_token)) {
        Some(("image", kind)) => !kind.contains("svg") && !kind.contains("xml"),
        Some(("audio" | "video", _)) => true,
        Some(("text", kind)) => kind == "plain",
        Some(("application", kind)) => matches!(kind, "json" | "octet-stream" | "gzip" | "zstd" | "x-ndjson"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_content_is_sent_as_attachment() {
        for harmless in ["image/png", "IMAGE/JPEG; x=y", "video/mp4", "audio/ogg", "text/plain; charset=utf-8"] {
            assert_eq!(shown(harmless), format!("content-type: {harmless}\r\n"));
        }
        for other in [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            "text/xml",
            "text/css",
            "text/javascript",
            "image/svg+xml",
            "Image/SVG",
            "application/xhtml+xml",
            "application/pdf",
            "application/x-shockwave-flash",
            "multipart/related",
            "html",
            " ",
            "image/png, text/html",
        ] {
            assert!(shown(other).contains("\r\ncontent-disposition: attachment\r\n"), "{other}");
        }
    }
}
