/** Returns the text of a file, or null when there is none. Throws on any other error. */
export function readIfThere(path: string): string | null {
  try {
    // Not imported: the import of a built-in module reads all its exports, which costs more than this call.
    return process.getBuiltinModule('node:fs').readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
