// Paths of ingested files, relative to their root, and roots, relative to nothing: `docs`, `guide/intro.md`.

export const maxSourcePath = 500

/** Tells whether the path is relative, in its shortest form, and the same on every system. */
export function isSourcePath(path: string): boolean {
  if (path === '' || path.length > maxSourcePath || !path.isWellFormed()) return false
  // Control characters break lines of logs; others take a backslash or a drive for the way out.
  if (/[\p{Cc}\\]/u.test(path) || /^[A-Za-z]:/.test(path)) return false
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}

/** Returns the kind of page that the file becomes; null: it is not ingested. */
export function sourceKind(path: string): 'markdown' | 'csv' | null {
  const ending = /\.(md|markdown|csv)$/i.exec(path)?.[1]?.toLowerCase()
  return ending === undefined ? null : ending === 'csv' ? 'csv' : 'markdown'
}

/** The path without its ending. */
export const sourceStem = (path: string): string => path.replace(/\.[^./]+$/, '')
