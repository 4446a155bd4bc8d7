import { byteLength } from './byte-length.ts'

// Paths of the files of a bundle. Each names a file below the folder of its bundle, and no two name the same file, on any file system:
// some ignore case, some the form of accents, Windows also dots and blanks at the end of a name.

/** The most files of a bundle, and their bytes together (`totalBytes`). */
export const bundleLimits = { files: 200, totalBytes: 24 * 1024 * 1024 } as const
export const pathLimits = { bytes: 240, segmentBytes: 120, depth: 8 } as const

/** Names that Windows takes for a device, whatever the extension. */
const deviceNames = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)/i
/** Controls, marks that cannot be seen, halves of pairs, private and unassigned characters, line separators. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u
const reservedCharacters = /[\\:*?"<>|]/
/** Windows gives long names a second name of this form. */
const shortName = /~\d/

/** Says why a path cannot be taken, as `... <flaw>`; null when it can. */
export function bundlePathFlaw(path: string): string | null {
  if (path === '') return 'is empty'
  // The length comes before anything that looks at each character.
  if (path.length > pathLimits.bytes || byteLength(path) > pathLimits.bytes)
    return `is longer than ${pathLimits.bytes} bytes`
  if (unseen.test(path)) return 'holds a character that cannot be seen'
  if (path.startsWith('/')) return 'is absolute'
  if (reservedCharacters.test(path)) return 'holds one of \\ : * ? " < > |'
  const segments = path.split('/')
  if (segments.length > pathLimits.depth) return `is deeper than ${pathLimits.depth} folders`
  for (const segment of segments) {
    const flaw = segmentFlaw(segment)
    if (flaw !== null) return flaw
  }
  return null
}

function segmentFlaw(segment: string): string | null {
  if (segment === '') return 'has an empty part'
  if (segment === '.' || segment === '..') return 'has a part that is . or ..'
  if (byteLength(segment) > pathLimits.segmentBytes) return `has a part of more than ${pathLimits.segmentBytes} bytes`
  if (/[.\s]$/u.test(segment) || /^\s/u.test(segment)) return 'has a part with a blank at its ends or a dot at its end'
  // File systems that know other forms of letters see the segment like this.
  const plain = segment.normalize('NFKC')
  if (deviceNames.test(plain)) return 'has a part that names a device of Windows'
  if (reservedCharacters.test(plain) || plain.includes('/')) return 'holds one of / \\ : * ? " < > | in another form'
  if (/[.\s]$/u.test(plain) || plain === '') return 'has a part with a blank at its ends or a dot at its end'
  if (shortName.test(plain)) return 'has a part like the short names of Windows (~1)'
  if (plain.toLowerCase() === '.git') return 'has a part that is .git'
  return null
}

/** Two paths with the same key are one file on some file system. */
const keyOf = (path: string): string => path.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')

/** The first path that cannot be taken together with those before it; null when all can. */
export function bundlePathsFlaw(paths: readonly string[]): { path: string; flaw: string } | null {
  /** The spelling of each path, and whether it is a file or a folder, by its key. */
  const known = new Map<string, { spelling: string; isFile: boolean }>()
  for (const path of paths) {
    const flaw = bundlePathFlaw(path)
    if (flaw !== null) return { path, flaw }
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const folder = path.slice(0, end)
      const found = known.get(keyOf(folder))
      if (found === undefined) known.set(keyOf(folder), { spelling: folder, isFile: false })
      else if (found.isFile || found.spelling !== folder) return { path, flaw: `collides with ${found.spelling}` }
    }
    const found = known.get(keyOf(path))
    if (found !== undefined) return { path, flaw: `collides with ${found.spelling}` }
    known.set(keyOf(path), { spelling: path, isFile: true })
  }
  return null
}
