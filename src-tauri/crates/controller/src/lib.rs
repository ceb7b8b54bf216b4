//! holdfast-controller
