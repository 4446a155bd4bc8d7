import { resolve } from 'node:path'
import { usageError } from '../errors/cli-error.ts'

/** Reads the bytes of a file; `-` is standard input. */
export async function readFileOrInput(
  path: string,
  { cwd, readInput }: { cwd: string; readInput: () => Promise<Buffer> },
): Promise<Buffer> {
  if (path === '-') return readInput()
  try {
    // Not imported, as in files.ts. The promise version would take longer to load than the file.
    return process.getBuiltinModule('node:fs').readFileSync(resolve(cwd, path))
  } catch (error) {
    throw usageError(`The file ${path} cannot be read: ${(error as Error).message}.`)
  }
}
