//! holdfast-serve
