import { idFrom } from '../../../shared/lib/ids.ts'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createOutbound, type Outbound } from '../../../control-plane/outbound/outbound.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { RepoSources, sourceLimits, type SourceLimits } from '../../../control-plane/repo-source/repo-sources.ts'
import { readSource } from '../../../control-plane/repo-source/source.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { startGitServer, type GitServer, type Tree } from '../../kit/git-server.ts'

// What hostile repositories, servers and callers do to the reading of a repository, with a real git.

let server: GitServer
beforeAll(async () => void (server = await startGitServer()))
afterAll(() => server.close())
beforeEach(() => void (server.answer = null))

const allowed = createOutbound({
  allowHosts: ['127.0.0.1', 'git.test'],
  world: realWorld,
  resolveHost: () => Promise.resolve(['127.0.0.1']),
})
const folders: string[] = []
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'fetches-'))
  folders.push(folder)
  return folder
}
const sourcesWith = (more: { limits?: Partial<SourceLimits>; folder?: string; outbound?: Outbound } = {}) =>
  new RepoSources({
    folder: more.folder ?? newFolder(),
    outbound: more.outbound ?? allowed,
    world: realWorld,
    log: silentLog,
    limits: { ...sourceLimits, ...more.limits },
  })

interface Asked {
  url: string
  ref?: string
  subdir?: string
}
function sourceOf(asked: Asked) {
  const { source, flaw } = readSource(asked)
  if (source === null) throw new Error(flaw.message)
  return source
}

/** Reads the whole repository: the commit, and its files by their paths. */
async function read(asked: Asked, { sources = sourcesWith(), signal = new AbortController().signal } = {}) {
  return sources.with(sourceOf(asked), { workspaceId: idFrom('w'), signal }, async (repo) => {
    const entries = await repo.list()
    const files = entries.filter(({ kind }) => kind === 'file')
    const contents = await repo.read(files)
    return {
      sha: await repo.sha(),
      entries,
      files: Object.fromEntries(files.map(({ path }, at) => [path, String(contents[at])])),
    }
  })
}

let count = 0
function newRepo(tree: Tree) {
  const name = `repo-${++count}.git`
  const repo = server.repo(name)
  return { repo, name, url: `${server.url}/${name}`, sha: repo.commit(tree) }
}
const refused = (reason: string) => expect.objectContaining({ name: 'SourceError', reason })

describe('a repository', () => {
  it('is read at its default branch, a branch, a tag, an annotated tag and a commit', async () => {
    const { repo, url, sha } = newRepo({ 'SKILL.md': 'main', bin: { run: { mode: '100755', content: '#!' } } })
    const other = repo.commit({ 'SKILL.md': 'other' }, 'feature/x')
    repo.git(['tag', 'v1', other])
    repo.git(['tag', '-a', '-m', 'x', 'v2', other])
    const main = await read({ url })
    expect([main.sha, main.files]).toEqual([sha, { 'SKILL.md': 'main', 'bin/run': '#!' }])
    expect(main.entries.map(({ executable }) => executable)).toEqual([false, true])
    for (const ref of ['feature/x', 'refs/heads/feature/x', 'v1', 'v2', other])
      expect([ref, (await read({ url, ref })).sha]).toEqual([ref, other])
    expect((await read({ url, ref: sha })).files['SKILL.md']).toBe('main')
  })

  it('is read below a folder, which must be one', async () => {
    const { url } = newRepo({ a: { b: { 'x.md': 'x' } }, file: 'x' })
    expect((await read({ url, subdir: './a/b/' })).files).toEqual({ 'x.md': 'x' })
    for (const subdir of ['a/c', 'file']) await expect(read({ url, subdir })).rejects.toEqual(refused('no_folder'))
  })

  it('leaves nothing behind, whatever becomes of it', async () => {
    const { url } = newRepo({ 'SKILL.md': 'x' })
    const folder = newFolder()
    const sources = sourcesWith({ folder })
    await read({ url }, { sources })
    await expect(read({ url, ref: 'none' }, { sources })).rejects.toEqual(refused('unreadable'))
    const failing = sources.with(
      sourceOf({ url }),
      { workspaceId: idFrom('w'), signal: new AbortController().signal },
      () => Promise.reject(new Error('mine')),
    )
    await expect(failing).rejects.toThrow('mine')
    expect(readdirSync(folder)).toEqual([])
  })

  it('of a process that was killed is removed at the next start', async () => {
    const { url } = newRepo({ 'SKILL.md': 'x' })
    const folder = newFolder()
    for (const name of [`${process.pid}-left`, '999999999-left', `${process.ppid}-alive`])
      mkdirSync(join(folder, name, 'objects'), { recursive: true })
    mkdirSync(join(folder, `${process.pid}-working`))
    utimesSync(join(folder, `${process.pid}-left`), 1, 1)
    await read({ url }, { sources: sourcesWith({ folder }) })
    expect(readdirSync(folder).toSorted()).toEqual([`${process.pid}-working`, `${process.ppid}-alive`].toSorted())
  })

  it('says why it is not read', async () => {
    const { url } = newRepo({ 'SKILL.md': 'x' })
    const message = (asked: Asked) => read(asked).then(String, (error: Error) => error.message)
    expect(await message({ url, ref: 'none' })).toContain('no such branch')
    expect(await message({ url, ref: '0'.repeat(39) + '1' })).toContain('no such branch')
    expect(await message({ url: `${server.url}/none.git` })).toContain('no git repository')
    server.repo('empty.git')
    expect(await message({ url: `${server.url}/empty.git` })).toContain('empty')
    const closed = await startGitServer({ password: 'hush' })
    closed.repo('x.git').commit({ 'SKILL.md': 'x' })
    expect(await message({ url: `${closed.url}/x.git` })).toContain('not public')
    await closed.close()
    // As a plain web server answers that has the files of a bare repository.
    server.answer = (request, response) => {
      if (request.url?.includes('/info/refs') === true) response.end(`${'a'.repeat(40)}\trefs/heads/main\n`)
      else response.end('ref: refs/heads/main\n')
      return true
    }
    expect(await message({ url })).toContain('no git server')
  })
})

describe('hostile contents', () => {
  it('are listed as they are, and nothing of them becomes a file', async () => {
    const folder = newFolder()
    const names = ['..', '.git', 'A.md', 'a.md', 'e\u0301.md', '\u00e9.md', 'a\nb', 'CON']
    const twins = Object.fromEntries(names.map((name) => [name, name === '..' ? { up: 'x' } : 'x']))
    const { url, repo } = newRepo({
      ...twins,
      link: { mode: '120000', content: '/etc/passwd' },
      sub: { mode: '160000', oid: 'a'.repeat(40) },
      '.gitattributes': '* filter=evil diff=evil\n',
      '.gitmodules': '[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c "touch /tmp/evil"\n',
    })
    for (const hook of ['post-checkout', 'reference-transaction', 'post-merge'])
      repo.git(['config', `hook.${hook}`, 'evil'])
    const { entries } = await read({ url }, { sources: sourcesWith({ folder }) })
    const kinds = new Map(entries.map(({ path, kind }) => [path, kind]))
    expect([kinds.get('link'), kinds.get('sub'), kinds.get('../up')]).toEqual(['other', 'other', 'file'])
    expect(kinds.size).toBe(names.length + 4)
    expect(readdirSync(folder)).toEqual([])
    expect(server.requests.filter((one) => !one.includes('repo-'))).not.toContainEqual(expect.stringContaining('evil'))
  })

  it('of 10,000 files are listed; more than fits is refused', async () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`file-${at}`, 'x']))
    const { url } = newRepo({ skills: { many } })
    const signal = new AbortController().signal
    const list = (limits = {}) =>
      sourcesWith({ limits }).with(sourceOf({ url }), { workspaceId: idFrom('w'), signal }, (repo) => repo.list())
    expect(await list()).toHaveLength(10_000)
    await expect(list({ listBytes: 100_000 })).rejects.toEqual(refused('unreadable'))
  })

  it('of one tree within itself ten times over are refused', async () => {
    const { repo, url } = newRepo({ 'SKILL.md': 'x' })
    let entry = `100644 blob ${repo.git(['hash-object', '-w', '--stdin'], 'x')}`
    for (let depth = 0; depth < 10; depth++) {
      const ten = Array.from({ length: 10 }, (_, at) => `${entry}\t${at}\0`).join('')
      entry = `040000 tree ${repo.git(['mktree', '-z'], ten)}`
    }
    const tree = { mode: '040000', oid: entry.split(' ')[2]! }
    repo.commit({ bomb: tree, 'SKILL.md': 'x' })
    await expect(read({ url })).rejects.toThrow('too large')
  })

  it('that unfold to much more than they were sent as end at the limits of the system', async () => {
    const { repo, url } = newRepo({ 'SKILL.md': 'x' })
    repo.git(['config', 'core.bigFileThreshold', '2g'])
    repo.commit({ bomb: Buffer.alloc(120 * 1024 * 1024), 'SKILL.md': 'x' })
    const small = sourcesWith({ limits: { memoryBytes: 120 * 1024 * 1024 } })
    const signal = new AbortController().signal
    const reading = small.with(sourceOf({ url }), { workspaceId: idFrom('w'), signal }, async (fetched) => {
      const entries = await fetched.list()
      return fetched.read(entries)
    })
    await expect(reading).rejects.toThrow('too large')
  })

  it('that are larger than the room on the disk are refused', async () => {
    const { repo, url } = newRepo({ 'SKILL.md': 'x' })
    const noise = Buffer.from(realWorld.bytes(60_000))
    repo.commit({
      'SKILL.md': 'x',
      ...Object.fromEntries(
        Array.from({ length: 12 }, (_, at) => [
          `n${at}`,
          Buffer.concat([noise.subarray(at), Buffer.from(realWorld.bytes(60_000))]),
        ]),
      ),
    })
    const folder = newFolder()
    const small = sourcesWith({ limits: { packBytes: 1024 * 1024 }, folder })
    await expect(read({ url }, { sources: small })).rejects.toThrow('too large')
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('hostile servers', () => {
  it('that redirect inward are not followed', async () => {
    const inside = await startGitServer()
    inside.repo('x.git').commit({ 'SKILL.md': 'x' })
    const outbound = createOutbound({
      allowHosts: ['git.test'],
      world: realWorld,
      resolveHost: () => Promise.resolve(['127.0.0.1']),
    })
    server.answer = (request, response) => {
      response.writeHead(302, { location: `${inside.url}${request.url?.replace(/repo-\d+/, 'x')}` }).end()
      return true
    }
    const { name } = newRepo({ 'SKILL.md': 'x' })
    const url = `http://git.test:${server.port}/${name}`
    await expect(read({ url }, { sources: sourcesWith({ outbound }) })).rejects.toEqual(refused('refused'))
    expect(inside.requests).toEqual([])
    await inside.close()
  })

  it('that redirect to another address of theirs are followed, through the same checks', async () => {
    const { url, sha } = newRepo({ 'SKILL.md': 'x' })
    server.answer = (request, response) => {
      if (request.url?.includes('.git') === true) return false
      response.writeHead(301, { location: request.url!.replace('/info', '.git/info') }).end()
      return true
    }
    expect((await read({ url: url.replace('.git', '') })).sha).toBe(sha)
  })

  it('whose name means something else the second time get no second connection', async () => {
    const { name, sha } = newRepo({ 'SKILL.md': 'x' })
    const asked: string[] = []
    const resolveHost = (host: string) => Promise.resolve(asked.push(host) === 1 ? ['127.0.0.1'] : ['127.0.0.9'])
    const outbound = createOutbound({ allowHosts: ['git.test'], world: realWorld, resolveHost })
    const url = `http://git.test:${server.port}/${name}`
    expect((await read({ url }, { sources: sourcesWith({ outbound }) })).sha).toBe(sha)
    expect(asked).toEqual(['git.test'])
    const dotted = createOutbound({
      allowHosts: ['git.test'],
      world: realWorld,
      resolveHost: () => Promise.resolve(['127.0.0.1']),
    })
    expect(
      (await read({ url: url.replace('git.test', 'git.test.') }, { sources: sourcesWith({ outbound: dotted }) })).sha,
    ).toBe(sha)
  })

  it('that trickle are left when the time is over', async () => {
    const { url } = newRepo({ 'SKILL.md': 'x' })
    server.answer = (_, response) => {
      const timer = setInterval(() => response.write('0'), 20)
      response.once('close', () => clearInterval(timer))
      return true
    }
    const sources = sourcesWith({ limits: { fetchMs: 700 } })
    await expect(read({ url }, { sources })).rejects.toThrow('too long')
  })

  it('that cut a pack off are said to be unreadable', async () => {
    const { url } = newRepo({ 'SKILL.md': 'x'.repeat(50_000) })
    server.answer = (request, response) => {
      if (request.method !== 'POST') return false
      const write = response.write.bind(response)
      let passed = 0
      response.write = (chunk: Buffer) => {
        passed += chunk.length
        if (passed < 300) return write(chunk)
        response.destroy()
        return false
      }
      return false
    }
    await expect(read({ url })).rejects.toEqual(refused('unreadable'))
  })

  it('that answer something else than git are said to be none', async () => {
    server.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
      return true
    }
    await expect(read({ url: `${server.url}/x.git` })).rejects.toEqual(refused('unreadable'))
  })
})

describe('callers', () => {
  it('that leave end the fetch, also while it waits for its turn', async () => {
    const { url } = newRepo({ 'SKILL.md': 'x' })
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
    const { promise: left, resolve: leave } = Promise.withResolvers<void>()
    server.answer = (_, response) => {
      response.once('close', leave)
      arrive()
      return true
    }
    const sources = sourcesWith({ limits: { atOnce: 1 } })
    const first = new AbortController()
    const second = new AbortController()
    const reading = read({ url }, { sources, signal: first.signal })
    const waiting = read({ url }, { sources, signal: second.signal })
    await arrived
    second.abort(new Error('second left'))
    await expect(waiting).rejects.toThrow('second left')
    first.abort(new Error('first left'))
    await expect(reading).rejects.toThrow('first left')
    await left
  })

  it('of one workspace hold up nobody else, and are refused when too many wait', async () => {
    const { url, sha } = newRepo({ 'SKILL.md': 'x' })
    const ends: (() => void)[] = []
    server.answer = (request, response) => {
      if (!request.url!.includes('slow')) return false
      ends.push(() => response.writeHead(404).end())
      return true
    }
    const sources = sourcesWith({ limits: { atOnce: 2, perWorkspace: 1, waiting: 2 } })
    const signal = new AbortController().signal
    const ask = (workspaceId: string, asked: string) =>
      sources.with(sourceOf({ url: asked }), { workspaceId: idFrom(workspaceId), signal }, (repo) => repo.sha())
    const slow = `${server.url}/slow.git`
    const busy = [ask('a', slow), ask('a', slow), ask('a', slow)].map((one) => one.catch((error: Error) => error.name))
    await expect(ask('a', slow)).rejects.toEqual(refused('busy'))
    expect(await ask('b', url)).toBe(sha)
    server.answer = (_, response) => Boolean(response.writeHead(404).end())
    await expect.poll(() => ends.length).toBe(1)
    ends[0]!()
    expect(await Promise.all(busy)).toEqual(['SourceError', 'SourceError', 'SourceError'])
  })
})

it('leaves the machine alone: its configuration, credentials and proxies', async () => {
  const { url, sha } = newRepo({ 'SKILL.md': 'x' })
  const home = newFolder()
  const evil = join(home, 'evil')
  writeFileSync(
    join(home, '.gitconfig'),
    `[core]\n\thooksPath = ${home}\n[url "http://127.0.0.1:1/"]\n\tinsteadOf = ${server.url}/\n[credential]\n\thelper = "!touch ${evil}"\n`,
  )
  writeFileSync(join(home, '.netrc'), 'machine 127.0.0.1 login git password hush\n')
  const closed = await startGitServer({ password: 'hush' })
  closed.repo('x.git').commit({ 'SKILL.md': 'x' })
  const before = { ...process.env }
  Object.assign(process.env, {
    HOME: home,
    XDG_CONFIG_HOME: home,
    http_proxy: 'http://127.0.0.1:1',
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'http.proxy',
    GIT_CONFIG_VALUE_0: 'http://127.0.0.1:1',
    GIT_TRACE: evil,
  })
  try {
    expect((await read({ url })).sha).toBe(sha)
    await expect(read({ url: `${closed.url}/x.git` })).rejects.toEqual(refused('unreadable'))
  } finally {
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
    Object.assign(process.env, before)
    await closed.close()
  }
  expect(existsSync(evil)).toBe(false)
})
