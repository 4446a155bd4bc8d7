/** The first x.y.z in the text, for example of "2.1.329 (Claude Code)". */
export function versionIn(text: string): string | null {
  return /\b(\d{1,6}\.\d{1,6}\.\d{1,6})\b/.exec(text)?.[1] ?? null
}

/** Says whether `version` is known and not older than `least`. */
export function isAtLeast(version: string | null, least: string): boolean {
  if (version === null) return false
  const have = version.split('.').map(Number)
  const want = least.split('.').map(Number)
  for (const [index, part] of want.entries()) {
    const own = have[index] ?? 0
    if (own !== part) return own > part
  }
  return true
}
