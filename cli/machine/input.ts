import { isAbsolute, resolve } from 'node:path'
import { CliError, usageError } from '../errors/cli-error.ts'

/**
 * Returns what resolves the paths of a command line. A folder that was removed under svc has no path, so there a relative one fails, and all
 * else works: an agent that removed its folder can still finish its task. The process then moves to the root, since libraries ask for
 * the current folder.
 */
export function pathResolver(): (given: string) => string {
  const here = currentFolder()
  if (here === null) process.chdir('/')
  return (given) => {
    if (here !== null || isAbsolute(given)) return resolve(here ?? '/', given)
    throw new CliError(
      'folder_gone',
      `The folder in which svc was started is not there any more, so ${given === '' ? 'it' : given} cannot be found.`,
      { exit: 'usage', remediation: 'Go to another folder, or name the path from the root on.' },
    )
  }
}

function currentFolder(): string | null {
  try {
    return process.cwd()
  } catch {
    return null
  }
}

/** Reads the bytes of a file; `-` is standard input. `where` stands before what is said about a file that cannot be read. */
export async function readFileOrInput(
  path: string,
  { resolvePath, readInput }: { resolvePath: (given: string) => string; readInput: () => Promise<Buffer> },
  where = '',
): Promise<Buffer> {
  if (path === '-') return readInput()
  const file = resolvePath(path)
  try {
    // Not imported, as in files.ts. The promise version would take longer to load than the file.
    return process.getBuiltinModule('node:fs').readFileSync(file)
  } catch (error) {
    throw usageError(
      `${where}${where === '' ? 'The' : 'the'} file ${path} cannot be read: ${(error as Error).message}.`,
    )
  }
}
