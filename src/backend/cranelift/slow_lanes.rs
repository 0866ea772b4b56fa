//! Loops over lanes or elements, for paths that are rarely taken: little code, any lane count.
