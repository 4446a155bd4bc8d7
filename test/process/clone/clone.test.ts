import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Delivered } from '../../../device-manager/clone/job.ts'
import { runJob } from '../../../device-manager/clone/run-job.ts'
import type { TestRepo } from '../../kit/git-server.ts'
import { isLong } from '../../kit/forms.ts'
import { startProxy } from '../../kit/proxy.ts'
import { gitDoor, run } from '../sandbox/git-kit.ts'

// The clone of a run, made and delivered through a broker; no engine is needed for it.

const limits = { timeMs: 60_000, outputBytes: 64 * 1024 }
const branch = 'svc/ENG-1'
const address = 'https://git.example.com/team/web'

async function stage(options: Parameters<typeof gitDoor>[0] = {}) {
  const door = await gitDoor(options)
  const { git, url } = door
  const { folder } = git
  const bringAt = (at: string, more: { baseBranch?: string; branch?: string } = {}) => {
    const committer = { name: 'Cloudy', email: 'agt_1@agents.svc.invalid' }
    return runJob({ do: 'bring', url: at, folder, address, branch, baseBranch: null, committer, ...more }, limits)
  }
  const bring = (more?: Parameters<typeof bringAt>[1]) => bringAt(url, more)
  const deliverAt = async (at: string): Promise<Delivered> => {
    const job = { do: 'deliver', url: at, folder, branch, rescueBranch: 'svc/rescue/run_1', runId: 'run_1' } as const
    const answer = await runJob(job, limits)
    if (!answer.ok) throw new Error(answer.message)
    return answer.delivered!
  }
  const deliver = () => deliverAt(url)
  /** As the harness has git, without settings of the test. */
  const env = { PATH: process.env['PATH']!, HOME: join(door.root, 'home'), GIT_TERMINAL_PROMPT: '0' }
  const inside = (...args: string[]) => run('git', args, { cwd: folder, env })
  const commit = async (text: string) => {
    writeFileSync(join(folder, 'a'), text)
    await inside('add', '-A')
    await inside('commit', '-qm', text)
    return inside('rev-parse', 'HEAD')
  }
  return { ...door, folder, bring, bringAt, deliver, deliverAt, inside, commit }
}

const idOf = (repo: TestRepo, ref: string) => repo.git(['rev-parse', ref])

describe('the clone of a run', () => {
  test('is at its branch, knows its origin by the address that people know, and reaches it', async () => {
    const { bring, inside, folder, repo } = await stage()
    expect(await bring()).toEqual({ ok: true })
    expect(await inside('status', '-sb')).toMatch(/^## svc\/ENG-1/)
    expect(await inside('config', 'remote.origin.url')).toBe(address)
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('text')
    repo.commit({ a: 'of others' }, 'other')
    await inside('fetch', '-q', 'origin')
    expect(await inside('rev-parse', 'origin/other')).toBe(idOf(repo, 'other'))
  })

  test('is made and delivered although its broker leaves at each transfer, and is there again', async () => {
    const { url, bringAt, deliverAt, commit, repo } = await stage()
    const way = await startProxy(() => ({ host: '127.0.0.1', port: Number(new URL(url).port) }))
    onTestFinished(() => way.close())
    /** Each kind of answer once: of the refs, and of the transfer itself. */
    const cut = new Set<string>()
    way.intercept((chunk) => {
      const [, kind] = /content-type: (application\/x-git-\S+)/i.exec(chunk) ?? []
      if (kind === undefined || cut.has(kind)) return 'pass'
      cut.add(kind)
      return 'cut'
    })
    const there = `${way.url}/git/r1`
    expect(await bringAt(there)).toEqual({ ok: true })
    const mine = await commit('mine')
    expect(await deliverAt(there)).toEqual({ pushed: mine, rescued: null, lost: null })
    expect(idOf(repo, branch)).toBe(mine)
    expect([...cut].toSorted()).toEqual(
      ['receive-pack-advertisement', 'receive-pack-result', 'upload-pack-advertisement', 'upload-pack-result'].map(
        (kind) => `application/x-git-${kind}`,
      ),
    )
  })

  test('goes on at its branch where the git host has that, and at the base branch where it has not', async () => {
    const { bring, inside, repo } = await stage()
    const base = repo.commit({ a: 'base' }, 'release')
    expect(await bring({ baseBranch: 'release' })).toEqual({ ok: true })
    expect(await inside('rev-parse', 'HEAD')).toBe(base)
    const there = repo.commit({ a: 'there' }, branch)
    expect(await bring({ baseBranch: 'release' })).toEqual({ ok: true })
    expect(await inside('rev-parse', 'HEAD')).toBe(there)
    expect(await inside('rev-parse', 'origin/release')).toBe(base)
  })

  test('begins in an empty repository', async () => {
    const { bring, commit, deliver, repo } = await stage()
    repo.git(['update-ref', '-d', 'refs/heads/main'])
    expect(await bring({ baseBranch: 'main' })).toEqual({ ok: true })
    const id = await commit('first')
    expect(await deliver()).toEqual({ pushed: id, rescued: null, lost: null })
    expect(idOf(repo, branch)).toBe(id)
  })

  test('cannot be had without its base branch, or a way to the git host, and says why', async () => {
    const { bring, repo, server } = await stage()
    expect(await bring({ baseBranch: 'nowhere' })).toEqual({
      ok: false,
      message: 'The repository has no branch nowhere.',
    })
    repo.git(['symbolic-ref', 'HEAD', 'refs/heads/gone'])
    expect(await bring()).toMatchObject({
      ok: false,
      message: expect.stringMatching(/names no branch as its own/) as string,
    })
    server.answer = (_request, response) => response.writeHead(404).end() !== null
    expect(await bring()).toMatchObject({
      ok: false,
      message: expect.stringMatching(/^The repository cannot be cloned: .*shows no such repository/) as string,
    })
  })
})

describe('what a run did', () => {
  test('is nothing where nothing was done, and is pushed where it was committed', async () => {
    const { bring, deliver, commit, repo } = await stage()
    await bring()
    expect(await deliver()).toEqual({ pushed: null, rescued: null, lost: null })
    expect(repo.git(['for-each-ref', '--format=%(refname)'])).toBe('refs/heads/main')
    const id = await commit('mine')
    expect(await deliver()).toEqual({ pushed: id, rescued: null, lost: null })
    expect(await deliver()).toEqual({ pushed: id, rescued: null, lost: null })
    expect(repo.git(['for-each-ref', '--format=%(refname) %(objectname)'])).toContain(`refs/heads/${branch} ${id}`)
  })

  test('is rescued where it is not committed, or on another branch, as one commit', async () => {
    const { bring, deliver, commit, inside, folder, repo } = await stage()
    await bring()
    const pushed = await commit('mine')
    await inside('checkout', '-q', '-b', 'side', 'origin/main')
    const side = await commit('aside')
    await inside('checkout', '-q', branch)
    writeFileSync(join(folder, 'b'), 'not committed')
    writeFileSync(join(folder, '.gitignore'), 'ignored')
    writeFileSync(join(folder, 'ignored'), 'x')
    const { rescued, ...rest } = await deliver()
    expect(rest).toEqual({ pushed, lost: null })
    expect(rescued!.why).toBe('The commits of side and files that were not committed are at svc/rescue/run_1.')
    expect(repo.git(['rev-parse', 'svc/rescue/run_1^1', 'svc/rescue/run_1^2']).split('\n')).toEqual([pushed, side])
    expect(repo.git(['ls-tree', '--name-only', 'svc/rescue/run_1']).split('\n')).toEqual(['.gitignore', 'a', 'b'])
  })

  test('is rescued where others were faster on its branch', async () => {
    const { bring, deliver, commit, repo } = await stage()
    await bring()
    const mine = await commit('mine')
    const theirs = repo.commit({ a: 'theirs' }, branch)
    const { pushed, rescued, lost } = await deliver()
    expect({ lost, oid: rescued?.oid }).toEqual({ lost: null, oid: mine })
    expect(rescued!.why).toMatch(/could not be pushed/)
    expect([pushed, idOf(repo, branch)]).toEqual([theirs, theirs])
    expect(idOf(repo, 'svc/rescue/run_1')).toBe(mine)
  })

  test('is told as lost where no git host takes it', async () => {
    const { bring, deliver, commit, server } = await stage()
    await bring()
    await commit('mine')
    server.answer = (_request, response) => response.writeHead(500).end() !== null
    expect((await deliver()).lost).toMatch(/^The commits of svc\/ENG-1 could not be pushed: /)
  })

  test('is told as lost where the clone is gone', async () => {
    const { bring, deliver, folder } = await stage()
    await bring()
    rmSync(folder, { recursive: true })
    expect((await deliver()).lost).toMatch(/could not be read/)
  })

  test('starts nothing that a run put into its clone', async () => {
    const { bring, deliver, inside, folder, root, repo, commit } = await stage()
    await bring()
    await commit('mine')
    const trap = join(root, 'trap')
    writeFileSync(trap, `#!/bin/sh\necho "$0 $@" >> ${join(root, 'sprung')}\nexit 1\n`, { mode: 0o755 })
    mkdirSync(join(folder, '.git/hooks'))
    for (const hook of ['pre-push', 'reference-transaction', 'post-index-change', 'pre-auto-gc'])
      symlinkSync(trap, join(folder, '.git/hooks', hook))

    for (const [name, value] of [
      ['core.fsmonitor', trap],
      ['core.sshCommand', trap],
      ['core.askPass', trap],
      ['core.alternateRefsCommand', trap],
      ['credential.helper', trap],
      ['filter.x.clean', trap],
      ['filter.x.process', trap],
      ['gpg.program', trap],
      ['commit.gpgSign', 'true'],
      ['push.gpgSign', 'true'],
      ['url.ext::.insteadOf', 'http://'],
      ['remote.pushDefault', 'elsewhere'],
      ['protocol.ext.allow', 'always'],
      ['http.proxy', 'http://127.0.0.1:1'],
      ['core.worktree', '/'],
      ['include.path', '/dev/zero/x'],
    ] as const)
      await inside('config', '--file', join(folder, '.git/config'), name, value)
    writeFileSync(join(folder, '.gitattributes'), '* filter=x\n')
    writeFileSync(join(folder, 'c'), 'content')
    const { lost, rescued } = await deliver()
    expect({ lost, sprung: existsSync(join(root, 'sprung')) }).toEqual({ lost: null, sprung: false })
    expect(rescued).not.toBeNull()
    expect(repo.git(['show', 'svc/rescue/run_1:c'])).toBe('content')
  })

  test('follows no link out of the clone, and takes no file of a folder that is none', async () => {
    const { bring, deliver, folder, repo } = await stage()
    await bring()
    symlinkSync('/etc', join(folder, 'link'))
    execFileSync('mkfifo', [join(folder, 'pipe')])
    writeFileSync(join(folder, 'b'), 'x')
    expect((await deliver()).lost).toBeNull()
    expect(repo.git(['ls-tree', 'svc/rescue/run_1', 'link'])).toMatch(/^120000 blob/)
    expect(repo.git(['ls-tree', '--name-only', 'svc/rescue/run_1', 'pipe'])).toBe('')
  })

  test.each([
    '.gitignore',
    '.git/HEAD',
    '.git/refs/heads/x',
    ...(isLong
      ? [
          '.gitattributes',
          '.git/config',
          '.git/index',
          '.git/info/exclude',
          '.git/packed-refs',
          '.git/objects/info/alternates',
          'sub/.gitignore',
          'sub/.git/HEAD',
        ]
      : []),
  ])('does not wait at a pipe, or at what never ends, in the place of %s', async (place) => {
    const { bring, deliver, folder, commit, repo } = await stage()
    await bring()
    await commit('mine')
    writeFileSync(join(folder, 'b'), 'x')
    const path = join(folder, place)
    for (const make of [() => execFileSync('mkfifo', [path]), () => symlinkSync('/dev/zero', path)]) {
      mkdirSync(dirname(path), { recursive: true })
      rmSync(path, { force: true })
      make()
      const { lost, rescued } = await deliver()
      // Without its HEAD or its settings a clone is none, and that is said; with them all of it is there.
      if (!/^\.git.(HEAD|config)$/.test(place))
        expect({ lost, rescued }).toEqual({ lost: null, rescued: expect.anything() })
      if (rescued !== null) expect(repo.git(['show', 'svc/rescue/run_1:b'])).toBe('x')
      else expect(lost).toMatch(/^What the run left in its clone could not be read: ./)
    }
  })

  test('takes names that are no text, deep folders and many files along', async () => {
    const { bring, deliver, folder, repo } = await stage()
    await bring()
    const names = ['a\nb', ' ', '-rf', '\u{1b}[2J', '*', ':(exclude)a']
    for (const name of names) writeFileSync(join(folder, name), 'x')
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe, 0x0a])]), 'x')
    mkdirSync(join(folder, 'many'))
    for (let file = 0; file < 5_000; file++) writeFileSync(join(folder, 'many', String(file)), '')
    let deep = folder
    for (let depth = 0; depth < 300; depth++) deep = join(deep, 'd')
    mkdirSync(deep, { recursive: true })
    writeFileSync(join(deep, 'file'), 'x')
    expect(await deliver()).toMatchObject({ lost: null })
    const listed = repo.git(['ls-tree', '-r', '-z', '--name-only', 'svc/rescue/run_1']).split('\0')
    expect(listed).toEqual(expect.arrayContaining(names))
    expect(listed).toContain(`${'d/'.repeat(300)}file`)
    expect(listed.filter((name) => name.startsWith('many/'))).toHaveLength(5_000)
  })
})

describe('a job', () => {
  test('ends when its time is over, with all that it started', async () => {
    const { url, folder, server } = await stage()
    server.answer = () => true
    const committer = { name: 'a', email: 'a@b' }
    const job = { do: 'bring', url, folder, address, branch, baseBranch: null, committer } as const
    expect(await runJob(job, { ...limits, timeMs: 1_500 })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/took longer/) as string,
    })
    const left = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
    expect(left.split('\n').filter((line) => line.includes(url))).toEqual([])
  })

  test('ends when it is told to', async () => {
    const { url, folder, server } = await stage()
    const stopping = new AbortController()
    server.answer = () => {
      stopping.abort()
      return true
    }
    const committer = { name: 'a', email: 'a@b' }
    const job = { do: 'bring', url, folder, address, branch, baseBranch: null, committer } as const
    expect(await runJob(job, { ...limits, signal: stopping.signal })).toMatchObject({ ok: false })
  })
})
