import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { BundleCache, type BundleCacheOptions } from '../../../device-manager/skills/bundle-cache.ts'
import { addSkills, leftOutEvents } from '../../../device-manager/run-host/launch/workspace-skills.ts'
import { addSvcSkill } from '../../../device-manager/run-host/launch/svc-skill.ts'
import { bundleHashText } from '../../../shared/lib/bundle-hash.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { offeredSkill } from '../../../shared/runs/skills.ts'
import { smallDisk, whyNoSmallDisk } from '../../kit/small-disk.ts'

// Skills on a device whose disk is really full: while they are brought, and while a run gets its copy.

const mib = 1024 * 1024
const log = { info() {}, warn() {} } as unknown as BundleCacheOptions['log']
const none = { given: [], told: { folders: [], digest: '' }, leftOut: [] }

async function stage() {
  const folder = mkdtempSync(join(tmpdir(), 'svc-full-'))
  const disk = await smallDisk(join(folder, 'disk'), 16)
  const contents = new Map([
    ['SKILL.md', Buffer.from('Text.')],
    ['large-1', randomBytes(2 * mib)],
    ['large-2', randomBytes(2 * mib)],
  ])
  const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')
  const files = [...contents].map(([path, bytes]) => ({
    path,
    sizeBytes: bytes.length,
    sha256: sha256(bytes),
    executable: false,
  }))
  const bundleHash = sha256(bundleHashText(files))
  const bundle = Buffer.concat([Buffer.from(`${JSON.stringify({ files })}\n`), ...contents.values()])
  const server = createServer((_request, response) => void response.end(bundle))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await disk.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const bundles = join(disk.seenAt, 'skills')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const cache = new BundleCache({
    folder: bundles,
    world: realWorld,
    log,
    server: url,
    token: () => 't',
    wanted: () => new Set(),
  })
  const skill = offeredSkill.parse({ slug: 'big', description: 'x', bundleHash, fileCount: 3, totalBytes: 4 * mib })
  const ofRun = join(disk.seenAt, 'run', 'skills')
  const copies = (missed: Awaited<ReturnType<BundleCache['place']>>['missed'] = []) =>
    addSkills(none, { skills: [skill], leftOut: [] }, { brought: { bundles, missed: [...missed] }, folder: ofRun })
  /** Leaves so much room. */
  const leave = (bytes: number) => {
    disk.free()
    disk.fill()
    const ballast = join(disk.seenAt, 'ballast')
    truncateSync(ballast, Math.max(0, sizeOf(ballast) - bytes))
  }
  return { disk, bundles, cache, skill, ofRun, copies, leave }
}

const sizeOf = (path: string) => statSync(path).size
const why = whyNoSmallDisk()
if (why !== null) process.stderr.write(`*** NOT TESTED: skills on a full disk, since ${why}\n`)

test.skipIf(why !== null).each([0, 3 * mib])(
  'a skill that the disk has no room for (%i bytes) is left out with a sentence, and there once it has',
  async (room) => {
    const { disk, bundles, cache, skill, ofRun, copies, leave } = await stage()
    leave(room)
    const { placed, missed } = await cache.place([skill])
    const { bundleHash } = skill
    expect({ placed, missed }).toEqual({
      placed: [],
      missed: [{ bundleHash, reason: 'not_materialized', isDiskFull: true }],
    })
    expect(existsSync(bundles) ? readdirSync(bundles) : []).toEqual([])
    const without = await copies(missed)
    expect(without.given).toEqual([])
    expect(JSON.stringify(leftOutEvents(without))).toMatch(/big.*the disk of the device is full/)
    disk.free()
    expect(await cache.place([skill])).toEqual({ placed: [], missed: [] })
    expect((await copies()).given).toMatchObject([{ name: 'big', folder: join(ofRun, 'big') }])
  },
)

test.skipIf(why !== null).each([0, 3 * mib])(
  'a copy that the disk has no room for (%i bytes) is taken away, what is kept stays whole, and the next run has one',
  async (room) => {
    const { disk, bundles, cache, skill, ofRun, copies, leave } = await stage()
    expect(await cache.place([skill])).toEqual({ placed: [], missed: [] })
    leave(room)
    const without = addSvcSkill(await copies(), ofRun)
    expect(without.told.workspace?.leftOut[0]).toEqual({ slug: 'big', reason: 'disk_full' })
    if (room === 0) expect(without.told.workspace?.leftOut[1]).toEqual({ slug: 'svc', reason: 'disk_full' })
    expect(existsSync(join(ofRun, 'big'))).toBe(false)
    expect(JSON.stringify(leftOutEvents(without))).toMatch(/big.*the disk of the device is full/)
    expect(readdirSync(bundles)).toEqual([skill.bundleHash])
    disk.free()
    const after = addSvcSkill(await copies(), ofRun)
    expect(after.given.map(({ name }) => name)).toEqual(['big', 'svc'])
    expect(sizeOf(join(ofRun, 'big', 'large-2'))).toBe(2 * mib)
  },
)
