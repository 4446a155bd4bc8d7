import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  type BigIntStats,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { World } from '../../../shared/lib/world.ts'
import type { GivenSkill } from '../../harness/parts/skills.ts'
import { adapterNamed } from '../../harness/registry.ts'
import { aheadOf, makePrivateFolder } from '../wire/record.ts'
import type { HostRequest } from '../wire/protocol.ts'
import { copySkill } from './skill-copy.ts'

/** Skills that a run may be going to have, and the program that would load them. */
export type LikelySkills = Extract<HostRequest, { type: 'skills.ahead' }>['sets'][number]

/** The files and bytes that are made ahead for one run: more would wear the disk for nothing. */
const most = { files: 1_000, bytes: 16 * 1024 * 1024 } as const
/** The pause after the last write. It is longer than the times of files tell moments apart, so a later change shows by another time. */
const settledMs = 50

interface Kept {
  key: string
  /** The folder with `skills` and whatever the program is given beside. */
  root: string
  given: readonly GivenSkill[]
  files: Map<string, { hash: string; facts: Facts }>
  folders: Map<string, Facts>
}

/**
 * Copies of skills that are made while a run host stands by: to make many small files takes longer than all else of a start. Each is for
 * one run, as other copies are.
 *
 *     (none) -- prepare --> made, and what they are is written down --> take: moved into the run's folder, if they are still that
 *                                                                \----> end: removed
 *
 * Where runs have no wall, one of the same user may have changed them meanwhile. So a copy is taken only when its folders and files are
 * those that were made, at the times of then, and each file holds what was written; else the run has copies that are made for it then.
 */
export class SkillsAhead {
  readonly #own: string
  readonly #world: Pick<World, 'sleep'>
  readonly #kept: Kept[] = []
  /** Hashes of the files that were moved into the run's folder, by their paths. */
  readonly laid = new Map<string, string>()
  #isOver = false

  /** `own`: the folder of the run to come. */
  constructor(own: string, world: Pick<World, 'sleep'>) {
    this.#own = own
    this.#world = world
  }

  get #folder(): string {
    return aheadOf(this.#own)
  }

  /** Never fails: a run makes what is missing. */
  async prepare(bundles: string, sets: readonly LikelySkills[]): Promise<void> {
    let [files, bytes] = [0, 0]
    for (const [at, set] of sets.entries()) {
      files += set.skills.reduce((sum, { fileCount }) => sum + fileCount, 0)
      bytes += set.skills.reduce((sum, { totalBytes }) => sum + totalBytes, 0)
      if (this.#isOver || files > most.files || bytes > most.bytes) return
      const root = join(this.#folder, String(at))
      try {
        const kept = await this.#make(set, { bundles, root })
        if (kept !== null) this.#kept.push(kept)
      } catch {
        await rm(root, { recursive: true, force: true }).catch(() => undefined)
      }
    }
  }

  /** Moves the copies of exactly these skills into the run's folder. null: there are none. */
  take(wanted: LikelySkills): readonly GivenSkill[] | null {
    this.#isOver = true
    const key = keyOf(wanted)
    const kept = wanted.skills.length === 0 ? undefined : this.#kept.find((one) => one.key === key)
    if (kept === undefined) return null
    try {
      if (!isUntouched(kept)) return null
      makePrivateFolder(this.#own)
      for (const name of readdirSync(kept.root)) {
        rmSync(join(this.#own, name), { recursive: true, force: true })
        renameSync(join(kept.root, name), join(this.#own, name))
      }
      for (const [path, { hash }] of kept.files) this.laid.set(join(this.#own, relative(kept.root, path)), hash)
      return kept.given
    } catch {
      return null
    }
  }

  /** Removes what was not taken. Never fails. */
  async end(): Promise<void> {
    this.#isOver = true
    await rm(this.#folder, { recursive: true, force: true }).catch(() => undefined)
  }

  async #make({ harness, skills }: LikelySkills, { bundles, root }: { bundles: string; root: string }) {
    const written = new Map<string, string>()
    const wrote = (path: string, content: string | Uint8Array) => void written.set(path, hashOf(content))
    const given: GivenSkill[] = []
    makePrivateFolder(root)
    for (const skill of skills) {
      await setImmediate()
      if (this.#isOver) return null
      const [target, folder] = [join(root, 'skills', skill.slug), join(this.#own, 'skills', skill.slug)]
      given.push(copySkill(skill, { bundles, target, folder, wrote }))
    }
    for (const { path, content } of adapterNamed(harness).skillFiles?.({ skills: given, runDir: this.#own }) ?? []) {
      const target = join(root, relative(this.#own, path))
      mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
      writeFileSync(target, content, { mode: 0o600 })
      wrote(target, content)
    }
    await this.#world.sleep(settledMs)
    return this.#isOver ? null : seen({ key: keyOf({ harness, skills }), root, given, written })
  }
}

const keyOf = ({ harness, skills }: LikelySkills): string =>
  JSON.stringify([harness, ...skills.map(({ slug, bundleHash, description }) => [slug, bundleHash, description])])

export const hashOf = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

/** By these the system tells a file that was changed or replaced; nobody but the system sets the time of its change. */
type Facts = Pick<BigIntStats, 'ino' | 'ctimeNs' | 'size' | 'nlink'>

const isSame = (a: Facts, b: Facts): boolean =>
  a.ino === b.ino && a.ctimeNs === b.ctimeNs && a.size === b.size && a.nlink === b.nlink

/** Notes the copy as it lies there, with the facts of its files; null: something else lies there than was written. */
function seen({ written, ...of }: Omit<Kept, 'files' | 'folders'> & { written: ReadonlyMap<string, string> }) {
  const kept: Kept = { ...of, files: new Map(), folders: new Map() }
  const left = [of.root]
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    const facts = lstatSync(at, { bigint: true })
    if (!facts.isDirectory()) return null
    kept.folders.set(at, facts)
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      const path = join(at, entry.name)
      if (entry.isDirectory()) {
        left.push(path)
        continue
      }
      const [hash, file] = [written.get(path), readPlain(path)]
      if (hash === undefined || file === null || hashOf(file.content) !== hash) return null
      kept.files.set(path, { hash, facts: file.facts })
    }
  }
  return kept.files.size === written.size ? kept : null
}

function isUntouched({ folders, files }: Kept): boolean {
  for (const [path, facts] of folders) if (!isSame(lstatSync(path, { bigint: true }), facts)) return false
  for (const [path, { hash, facts }] of files) {
    const file = readPlain(path)
    if (file === null || !isSame(file.facts, facts) || hashOf(file.content) !== hash) return false
  }
  return true
}

/** Reads a plain file that has one name, without following a link. null: it is none. */
function readPlain(path: string): { content: Uint8Array; facts: Facts } | null {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const facts = fstatSync(file, { bigint: true })
    if (!facts.isFile() || facts.nlink !== 1n || facts.size > BigInt(most.bytes)) return null
    const content = Buffer.allocUnsafe(Number(facts.size) + 1)
    return { content: content.subarray(0, readSync(file, content, 0, content.length, 0)), facts }
  } finally {
    closeSync(file)
  }
}
