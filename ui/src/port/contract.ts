// The types of the app operations and events, generated from the backend's. Types alone: nothing of
// the generated file's code comes with them.

export type * from '../bindings/bindings';
