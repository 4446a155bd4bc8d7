// Limits of the wiki that both ends know; without schemas, which `svc` would load for them.

/** Bytes of a body in UTF-8. */
export const maxPageBytes = 262_144
/** Bytes of a request that ingests. */
export const maxIngestBytes = 8_388_608
export const maxIngestFiles = 10_000
