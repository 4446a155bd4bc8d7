import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, opendir, readlink, realpath, lstat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import type { World } from '../../../shared/lib/world.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { isWithin } from '../../../shared/permissions/patterns/path-rules.ts'
import { runSkillLimits, type RunSkills } from '../../../shared/runs/skills.ts'
import { readSkillFile, type SkillFile } from '../../harness/parts/skill-file.ts'
import { skillLeftOutEvent, type GivenSkill, type SkillLeftOut } from '../../harness/parts/skills.ts'

/** The skills that were found in the folders of a run. */
export interface SkillsRead {
  given: readonly GivenSkill[]
  told: RunSkills
  leftOut: readonly SkillLeftOut[]
}

export interface SkillsPlace {
  cwd: string
  homeDir: string
  /** svc's own folders, from which no skills come. */
  ownFolders: readonly string[]
}

/** A mount that does not answer must not hold the run, nor a folder with no end. */
const limits = { lookMs: 5_000, entries: 5_000, listed: 1_000, depth: 8, told: 20, versionChars: 12 } as const

/** Reads the folders in their order, once. Never fails, and follows no link that leads out of a folder. */
export async function readSkills(folders: readonly string[], place: SkillsPlace, world: World): Promise<SkillsRead> {
  const reading = new Reading(place)
  const late = Promise.withResolvers<void>()
  const cancel = world.after(limits.lookMs, () => late.resolve())
  await Promise.race([reading.read(folders), late.promise])
  cancel()
  return reading.close(folders)
}

export const skillEvents = ({ told, leftOut }: SkillsRead): RunEventBody[] => [
  { kind: 'skills', data: told },
  ...leftOut.map(skillLeftOutEvent),
]

/** A skill or a folder that is left out, in words for people. */
class Flaw extends Error {}

class Reading {
  readonly #place: SkillsPlace
  readonly #given: (GivenSkill & { from: string; hash: string })[] = []
  readonly #leftOut: SkillLeftOut[] = []
  #done = 0
  #isClosed = false

  constructor(place: SkillsPlace) {
    this.#place = place
  }

  async read(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
      await this.#noting(folder, () => this.#folder(folder))
      if (this.#isClosed) return
      this.#done++
    }
  }

  /** Returns what was read so far. What the reading still brings does not count. */
  close(folders: readonly string[]): SkillsRead {
    this.#isClosed = true
    for (const path of folders.slice(this.#done))
      this.#leftOut.push({ path, why: `reading the folders took longer than ${limits.lookMs / 1_000} s` })
    const more = this.#leftOut.length - limits.told
    const leftOut = this.#leftOut.slice(0, limits.told)
    if (more > 0) leftOut.push({ path: `${more} more places`, why: 'mend those named above first' })
    const from = [...new Set(this.#given.map((skill) => skill.from))]
    const told = from.map((folder) => ({
      folder,
      skills: this.#given
        .filter((skill) => skill.from === folder)
        .map(({ name, hash }) => ({ name, version: hash.slice(0, limits.versionChars) })),
    }))
    const digest = sha256(JSON.stringify(this.#given.map(({ name, hash, folder }) => [name, hash, folder])))
    const given = this.#given.map(({ from: _from, hash: _hash, ...skill }) => skill)
    return { given, told: { folders: told, digest }, leftOut }
  }

  async #noting(path: string, look: () => Promise<void>): Promise<void> {
    try {
      await look()
    } catch (error) {
      if (!this.#isClosed) this.#leftOut.push({ path, why: wordsOf(error) })
    }
  }

  async #folder(from: string): Promise<void> {
    const root = await this.#rootOf(from)
    const names = (await namesIn(root, limits.entries)).filter((name) => !name.startsWith('.'))
    if (names.includes('SKILL.md')) throw new Flaw('it is a skill itself; name the folder above it')
    let found = 0
    for (const name of names) {
      if (this.#isClosed) return
      const file = await realOf(join(root, name, 'SKILL.md'))
      if (file === null) continue
      if (this.#given.length >= runSkillLimits.skills)
        throw new Flaw(`a run takes ${runSkillLimits.skills} skills, and has them from ${name} on`)
      found++
      await this.#noting(`${from.replace(/\/+$/, '')}/${name}`, () => this.#skill({ from, root, name, file }))
    }
    if (found === 0) throw new Flaw('it holds no <name>/SKILL.md')
  }

  async #rootOf(from: string): Promise<string> {
    const { cwd, homeDir, ownFolders } = this.#place
    const path = from === '~' || from.startsWith('~/') ? join(homeDir, from.slice(1)) : from
    const isRelative = !isAbsolute(path)
    const root = await realOf(isRelative ? join(cwd, path) : path)
    if (root === null || !(await lstat(root)).isDirectory())
      throw new Flaw('there is no such folder on this device; make it, or change the skill folders of the agent')
    if (isRelative && !isWithin(root, (await realOf(cwd)) ?? cwd))
      throw new Flaw('a link leads out of the folder of the agent; name the folder by its absolute path')
    for (const own of ownFolders)
      if (isWithin(root, own) || isWithin(root, (await realOf(own)) ?? own))
        throw new Flaw('svc keeps this folder for itself; put the skills elsewhere')
    return root
  }

  async #skill({ from, root, name, file }: { from: string; root: string; name: string; file: string }): Promise<void> {
    const folder = (await realOf(join(root, name))) ?? root
    if (!isWithin(file, root) || !isWithin(folder, root) || folder === root)
      throw new Flaw('a link leads out of the folder of skills; copy the skill into it')
    const { bytes, skill } = await readFileOf(file)
    if (skill.name !== name) throw new Flaw(`SKILL.md says the name ${skill.name}; its folder must be named so, too`)
    const other = this.#given.find((each) => each.name === name)
    if (other) throw new Flaw(`${other.from} has a skill of this name, which the run is given`)
    const files = await listOf(folder)
    const hash = sha256(bytes, JSON.stringify(files))
    if (this.#isClosed) return
    this.#given.push({ ...skill, folder, from, hash, hasFiles: files.length > 1 })
  }
}

async function readFileOf(file: string): Promise<{ bytes: Uint8Array; skill: SkillFile }> {
  // The flags keep it from waiting at a pipe, and from following a link that came meanwhile.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    if (!(await handle.stat()).isFile()) throw new Flaw('SKILL.md is no plain file')
    const buffer = Buffer.alloc(runSkillLimits.fileBytes + 1)
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0)
    if (bytesRead > runSkillLimits.fileBytes)
      throw new Flaw(
        `SKILL.md is larger than ${runSkillLimits.fileBytes / 1024} KiB; move parts of it into other files`,
      )
    const bytes = buffer.subarray(0, bytesRead)
    const skill = readSkillFile(textOf(bytes))
    if ('flaw' in skill) throw new Flaw(`SKILL.md cannot be used: ${skill.flaw}`)
    return { bytes, skill }
  } finally {
    await handle.close()
  }
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Flaw('SKILL.md is no UTF-8 text')
  }
}

/** Lists the names and sizes of all that lies in the folder of a skill, with the first thousand of them. Links are listed, not followed. */
async function listOf(folder: string): Promise<(string | number)[][]> {
  const listed: (string | number)[][] = []
  const left = [{ path: '', depth: 0 }]
  for (let at = left.shift(); at !== undefined; at = left.shift()) {
    for (const name of await namesIn(join(folder, at.path), limits.listed)) {
      if (name === '.git') continue
      if (listed.length >= limits.listed) return listed
      const path = at.path === '' ? name : `${at.path}/${name}`
      const facts = await lstat(join(folder, path))
      if (facts.isDirectory()) {
        if (at.depth < limits.depth) left.push({ path, depth: at.depth + 1 })
      } else if (facts.isSymbolicLink()) listed.push([path, await readlink(join(folder, path))])
      else listed.push([path, facts.size])
    }
  }
  return listed
}

async function namesIn(folder: string, most: number): Promise<string[]> {
  const names: string[] = []
  for await (const { name } of await opendir(folder)) {
    names.push(name)
    if (names.length >= most) break
  }
  return names.toSorted()
}

/** Returns the path without links; null: nothing is there. */
async function realOf(path: string): Promise<string | null> {
  try {
    return await realpath(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw error
  }
}

function wordsOf(error: unknown): string {
  if (error instanceof Flaw) return error.message
  return `it cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`
}

const sha256 = (...parts: readonly (string | Uint8Array)[]): string => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part).update('\0')
  return hash.digest('hex')
}
