/** Codes of OpenSSL for a chain that ends at an authority which is not known, as an own one of a company or of a proxy that reads TLS. */
const unknownAuthority = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_UNTRUSTED',
])
const otherwise: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: look at the clocks of both machines',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
}
const mostCauses = 10

/**
 * Says in a clause what is wrong with the certificate of whoever was asked ("... cannot be reached: its certificate is ..."), and what
 * helps; null: the error is about something else. `error`: what `fetch`, a request or a socket failed with; its causes are looked at, too.
 */
export function certificateTrouble(error: unknown): string | null {
  let at = error
  for (let depth = 0; depth < mostCauses && at instanceof Error; depth++, at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    if (code === undefined) continue
    if (unknownAuthority.has(code))
      return `its certificate is of an authority that is not known here (${code}). Name the file with that authority's certificate, which may be a proxy's that reads TLS, in NODE_EXTRA_CA_CERTS, and start the program anew`
    const why = otherwise[code]
    if (why !== undefined) return `${why} (${code})`
  }
  return null
}

/** The text with what is wrong with the certificate behind it, if that is the cause. */
export function withCertificateTrouble(text: string, error: unknown): string {
  const trouble = certificateTrouble(error)
  return trouble === null ? text : `${text}: ${trouble}`
}
