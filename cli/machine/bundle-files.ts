import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { CliError } from '../errors/cli-error.ts'

/** A file of a bundle as the API takes it. */
export interface BundleFile {
  path: string
  content?: string
  contentBase64?: string
  executable?: boolean
}

/** Of what the files are. The server refuses more of them; a folder that was named by mistake is not read as a whole. */
const bundleKinds = {
  skill: { files: 200, words: 'A skill' },
  plugin: { files: 1_000, words: 'A plugin' },
} as const
type BundleKind = keyof typeof bundleKinds
const mostBytes = 18 * 1024 * 1024

/** Reads the files of a folder, ordered by their paths. Links and folders of git are refused or left out. */
export function readBundleFiles(dir: string, kind: BundleKind = 'skill'): BundleFile[] {
  const paths: string[] = []
  try {
    collect(dir, paths, kind)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('no_directory', `${dir} cannot be read: ${(error as Error).message}.`, { cause: error })
  }
  let left = mostBytes
  return paths.toSorted().map((path) => {
    const { mode, size } = statSync(path)
    left -= size
    if (left < 0) throw new CliError('bundle_too_large', `${dir} has more than ${mostBytes} bytes.`)
    const name = relative(dir, path).split(sep).join('/')
    return { path: name, contentBase64: readFileSync(path).toString('base64'), executable: (mode & 0o100) !== 0 }
  })
}

function collect(folder: string, paths: string[], kind: BundleKind): void {
  const { files, words } = bundleKinds[kind]
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.name === '.git') continue
    if (entry.isDirectory()) collect(path, paths, kind)
    else if (entry.isFile()) paths.push(path)
    else throw new CliError('not_a_file', `${path} is a link or no file. ${words} has files alone.`)
    if (paths.length > files) throw new CliError('too_many_files', `${words} has at most ${files} files.`)
  }
}
