import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BaseRecord } from './base-store.ts'
import { renderConfig } from './carried-settings.ts'
import { ChangeSetFailure, failureOf } from './failure.ts'
import { runGit, type GitCall } from './git.ts'
import { renderIndex, type IndexEntry } from './index-file.ts'
import { callIn, type View } from './listing.ts'
import { PatchReader, type PatchedFile } from './patch.ts'

const diffArgs = (
  'diff --raw -p -z -M -l1000 -U3 --inter-hunk-context=0 --full-index --no-color --no-relative --no-ext-diff ' +
  '--no-textconv --ignore-submodules=dirty --submodule=short --src-prefix=a/ --dst-prefix=b/'
).split(' ')

export interface Comparison {
  view: View
  record: BaseRecord
  entries: readonly IndexEntry[]
  /** Patches of `GIT binary patch` for every file, whatever its attributes say. */
  asBinary?: boolean
}

/** Compares the given paths of the base with the working tree, in one git process. */
export async function comparePaths({ view, record, entries, asBinary = false }: Comparison): Promise<PatchedFile[]> {
  if (entries.length === 0) return []
  const captureDir = join(view.storeDir, `capture-${crypto.randomUUID()}`)
  try {
    await mkdir(captureDir)
    const indexFile = join(captureDir, 'index')
    await writeFile(indexFile, renderIndex(entries, record.objectFormat))
    const reader = new PatchReader(view.limits)
    const call = asBinary ? await binaryCall(view, record, captureDir) : callIn(view, diffArgs)
    const outcome = await runGit({ ...call, indexFile, onChunk: (chunk) => reader.push(chunk) })
    if (!outcome.ok && outcome.reason === 'too_much_output') {
      throw new ChangeSetFailure('too_large', `The diff is over ${view.limits.diffBytes} bytes.`)
    }
    if (!outcome.ok) throw failureOf(outcome, 'comparing the files')
    const files = reader.end()
    if (files === null) throw new ChangeSetFailure('diff_unavailable', 'The files changed while they were compared.')
    return files
  } finally {
    await rm(captureDir, { recursive: true, force: true })
  }
}

/**
 * Makes the capture's folder a git folder of its own, for `info/attributes` is the only place that wins over the
 * attributes files of the working tree.
 */
async function binaryCall(view: View, record: BaseRecord, captureDir: string): Promise<GitCall> {
  await Promise.all([mkdir(join(captureDir, 'info')), mkdir(join(captureDir, 'refs'))])
  const own = await readAttributes(join(view.storeDir, 'info', 'attributes'))
  await Promise.all([
    writeFile(join(captureDir, 'HEAD'), 'ref: refs/heads/none\n'),
    writeFile(
      join(captureDir, 'config'),
      renderConfig(record.settings.values, record.objectFormat, view.limits.fileBytes),
    ),
    writeFile(join(captureDir, 'info', 'attributes'), `${own}\n* -diff\n`, 'latin1'),
  ])
  return { ...callIn(view, [...diffArgs, '--binary']), gitDir: captureDir, objectDir: join(view.storeDir, 'objects') }
}

async function readAttributes(path: string): Promise<string> {
  const found = await stat(path).catch(() => null)
  if (found === null || !found.isFile() || found.size > 1024 * 1024) return ''
  return readFile(path, 'latin1')
}
