//! holdfast-sse
