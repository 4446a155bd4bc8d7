const pattern = /\bv?(\d{1,6}\.\d{1,6}\.\d{1,6})\b/g

/** The first x.y.z in the text, for example of "2.1.329 (Claude Code)". */
export function versionIn(text: string): string | null {
  return versionsIn(text)[0] ?? null
}

const versionsIn = (text: string): string[] => [...text.matchAll(pattern)].map(([, version]) => version!)

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

/**
 * Says whether what a program says of its version is surely older than `least`. It is not where the text names no version, the
 * 0.0.0 of a build from sources, or a version that is new enough beside others. A pre-release counts as its release.
 */
export function isSurelyOlder(text: string, least: string): boolean {
  const versions = versionsIn(text)
  return versions.length > 0 && !versions.some((version) => version === '0.0.0' || isAtLeast(version, least))
}
