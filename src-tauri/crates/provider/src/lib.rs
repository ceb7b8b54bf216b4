//! holdfast-provider
