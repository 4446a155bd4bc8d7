import { createHash } from 'node:crypto'
import { appendFileSync, createReadStream, createWriteStream, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createTarDecoder, type ParsedTarEntry } from 'modern-tar'
import { z } from 'zod'
import { OperatorError } from '../operator/people.ts'
import { type BackupAbout, backupAbout, backupFormat, entryNames, readBlobEntry, sumLine } from './contents.ts'

/** The paths at which entries are put, as drafts. */
export interface UnpackedPlaces {
  database: string
  key: string
  /** Sums of what came, until they are compared. */
  sums: string
  blob(blob: { mark: string; id: string }): string
}

export interface Unpacked {
  about: BackupAbout
  hasKey: boolean
  files: number
  /** The folder of all files; null: there are none. */
  mark: string | null
}

/**
 * Unpacks an archive as it is read, and fails with a sentence unless each entry is one that a backup has, in its place, and is as it
 * was written.
 */
export async function unpack(
  archive: string,
  places: UnpackedPlaces,
  check: (about: BackupAbout) => void,
): Promise<Unpacked> {
  writeFileSync(places.sums, '', { mode: 0o600 })
  const found: Found = { about: null, hasDatabase: false, hasKey: false, files: 0, mark: null, isWhole: false }
  try {
    const source = Readable.toWeb(createReadStream(archive, { highWaterMark: readBytes }))
    const entries = (source as ReadableStream<Uint8Array>).pipeThrough(createTarDecoder({ strict: true }))
    for await (const entry of entries as unknown as AsyncIterable<ParsedTarEntry>)
      await take(entry, { places, found, check })
  } catch (error) {
    if (error instanceof OperatorError || (error as NodeJS.ErrnoException).code !== undefined) throw error
    throw damaged(archive, error instanceof Error ? error.message : String(error))
  }
  const { about, hasDatabase, isWhole, hasKey } = found
  if (about === null || !hasDatabase || !isWhole) throw damaged(archive, 'its end is missing')
  if (hasKey !== (about.key === 'archive')) throw damaged(archive, `it has ${hasKey ? 'a' : 'no'} ${entryNames.key}`)
  return { about, hasKey, files: found.files, mark: found.mark }
}

interface Found extends Omit<Unpacked, 'about'> {
  about: BackupAbout | null
  hasDatabase: boolean
  isWhole: boolean
}

async function take(
  { header, body }: ParsedTarEntry,
  { places, found, check }: { places: UnpackedPlaces; found: Found; check: (about: BackupAbout) => void },
): Promise<void> {
  const { name } = header
  if (header.type !== 'file' || found.isWhole) throw stranger(name)
  if ((found.about === null) !== (name === entryNames.about))
    throw new OperatorError('The file is no backup of svc-server.')
  if (name === entryNames.about) {
    const text = await textOf(body)
    found.about = readAbout(text)
    check(found.about)
    return noteSum(places, createHash('sha256').update(text).digest('hex'), name)
  }
  if (name === entryNames.sums) {
    await compareSums(places.sums, body)
    found.isWhole = true
    return
  }
  const sha256 = await save(body, placeOf(name, { places, found }), name)
  noteSum(places, sha256, name)
}

function placeOf(name: string, { places, found }: { places: UnpackedPlaces; found: Found }): string {
  if (name === entryNames.database) {
    found.hasDatabase = true
    return places.database
  }
  if (name === entryNames.key) {
    found.hasKey = true
    return places.key
  }
  const blob = readBlobEntry(name)
  if (blob === null || (found.mark ?? blob.mark) !== blob.mark) throw stranger(name)
  found.mark = blob.mark
  found.files++
  return places.blob(blob)
}

/** One that comes twice finds its place taken. */
async function save(body: Body, path: string, name: string): Promise<string> {
  const hash = createHash('sha256')
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const source = Readable.fromWeb(body)
  const hashed = async function* (pieces: AsyncIterable<Uint8Array>) {
    for await (const piece of pieces) {
      hash.update(piece)
      yield piece
    }
  }
  try {
    await pipeline(source, hashed, createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw stranger(name)
    throw error
  }
  return hash.digest('hex')
}

type Body = ParsedTarEntry['body']

const noteSum = (places: UnpackedPlaces, sha256: string, name: string): void =>
  appendFileSync(places.sums, `${sumLine(sha256, name)}\n`)

/** Both lists are in the order of the archive. */
async function compareSums(ownPath: string, body: Body): Promise<void> {
  const lines = createInterface({ input: createReadStream(ownPath) })
  try {
    const own = lines[Symbol.asyncIterator]()
    for await (const told of createInterface({ input: Readable.fromWeb(body) })) {
      const { value } = (await own.next()) as { value?: string }
      if (told !== value)
        throw new OperatorError(
          `The backup is damaged: ${nameIn(value ?? told)} is not as it was written. Nothing was restored.`,
        )
    }
    const { done, value } = (await own.next()) as { done?: boolean; value?: string }
    if (done !== true) throw stranger(nameIn(value ?? ''))
  } finally {
    lines.close()
  }
}

const nameIn = (line: string): string => line.slice(line.indexOf('  ') + 2).slice(0, 200)

/** The text of `backup.json`, which is short. */
async function textOf(body: Body): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of Readable.fromWeb(body)) {
    length += (piece as Uint8Array).length
    if (length > mostAboutBytes) throw new OperatorError('The file is no backup of svc-server.')
    pieces.push(piece as Uint8Array)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function readAbout(text: string): BackupAbout {
  const value = parsed(text)
  const format = z.object({ format: z.number(), version: z.string() }).safeParse(value)
  if (format.success && format.data.format > backupFormat)
    throw new OperatorError(
      `The backup was made by svc-server ${format.data.version}, in a form that this one does not know. Restore it with that version.`,
    )
  const about = backupAbout.safeParse(value)
  if (!about.success) throw new OperatorError('The file is no backup of svc-server.')
  return about.data
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const stranger = (name: string) =>
  new OperatorError(
    `The backup has ${JSON.stringify(name.slice(0, 200))} where no backup has it. Nothing was restored.`,
  )

const damaged = (archive: string, why: string) =>
  new OperatorError(`${archive} is damaged, or no backup of svc-server: ${why}. Nothing was restored.`)

const readBytes = 256 * 1024
const mostAboutBytes = 16 * 1024
