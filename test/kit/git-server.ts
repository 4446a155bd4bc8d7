import { execFile, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startServer } from './hostile-server.ts'

/** Git repositories, served by git's own `http-backend` on a loopback port. */
export interface GitServer {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  readonly port: number
  /** The requests so far: method and address. */
  readonly requests: string[]
  /** Answers a request in place of git when it returns true. */
  answer: ((request: IncomingMessage, response: ServerResponse) => boolean) | null
  /** Before git hears of a request. */
  before: ((request: IncomingMessage) => Promise<void>) | null
  /** Makes a bare repository of this name; commits go to its branch `main`. */
  repo(name: string): TestRepo
  close(): Promise<void>
}

/** A file, a folder, or an entry of another kind: `120000` is a link, `160000` a submodule. */
export type Tree = { readonly [name: string]: string | Buffer | Entry | Tree }
export interface Entry {
  mode: string
  /** Of what the entry holds; or of an object that is there. */
  content?: string
  oid?: string
}
export interface TestRepo {
  readonly dir: string
  /** Returns the id of the commit. */
  commit(tree: Tree, branch?: string): string
  git(args: readonly string[], input?: string | Buffer): string
}

export async function startGitServer(options: { password?: string } = {}): Promise<GitServer> {
  const root = mkdtempSync(join(tmpdir(), 'git-server-'))
  const requests: string[] = []
  const state: Pick<GitServer, 'answer' | 'before'> = { answer: null, before: null }
  const reply = (request: IncomingMessage, response: ServerResponse) => {
    if (state.answer?.(request, response) === true) return
    const isLetIn = options.password === undefined || request.headers.authorization === basic(options.password)
    if (isLetIn) backend(root, request, response)
    else response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
  }
  const server = await startServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (state.before === null) reply(request, response)
    else void state.before(request).then(() => reply(request, response))
  })
  return Object.assign(state, {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    requests,
    repo: (name: string) => makeRepo(join(root, name)),
    async close() {
      await server.close()
      rmSync(root, { recursive: true, force: true })
    },
  })
}

const basic = (password: string) => `Basic ${Buffer.from(`git:${password}`).toString('base64')}`

function backend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const header = (name: string) => String(request.headers[name] ?? '')
  const child = spawn('git', ['http-backend'], {
    env: {
      ...cleanEnvironment(),
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: header('content-type'),
      HTTP_CONTENT_ENCODING: header('content-encoding'),
      GIT_PROTOCOL: header('git-protocol'),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  request.pipe(child.stdin).on('error', () => {})
  response.once('close', () => child.kill('SIGKILL'))
  let head = Buffer.alloc(0)
  const onHead = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk])
    const end = head.indexOf('\r\n\r\n')
    if (end === -1) return
    child.stdout.off('data', onHead)
    const headers = Object.fromEntries(
      head
        .toString('latin1', 0, end)
        .split('\r\n')
        .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const { Status: status = '200', ...rest } = headers
    response.writeHead(Number.parseInt(status, 10), rest).write(head.subarray(end + 4))
    child.stdout.pipe(response)
  }
  child.stdout.on('data', onHead)
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const person = { GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.com' }
  const committer = { GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.com' }
  return {
    PATH: process.env['PATH'],
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    ...person,
    ...committer,
  }
}

function makeRepo(dir: string): TestRepo {
  mkdirSync(dir, { recursive: true })
  const git = (args: readonly string[], input?: string | Buffer) =>
    execFileSync('git', ['-C', dir, ...args], { env: cleanEnvironment(), input: input ?? '', encoding: 'utf8' }).trim()
  git(['init', '--quiet', '--bare', '--initial-branch=main'])
  git(['config', 'uploadpack.allowAnySHA1InWant', 'true'])
  const treeOf = (tree: Tree): string =>
    git(
      ['mktree', '-z', '--missing'],
      Object.entries(tree)
        .map(([name, value]) => `${entryOf(value)}\t${name}\0`)
        .join(''),
    )
  const blobs = new Map<string, string>()
  const blobOf = (content: string | Buffer): string => {
    if (typeof content !== 'string') return git(['hash-object', '-w', '--stdin'], content)
    const known = blobs.get(content) ?? git(['hash-object', '-w', '--stdin'], content)
    blobs.set(content, known)
    return known
  }
  const entryOf = (value: Tree[string]): string => {
    if (typeof value === 'string' || Buffer.isBuffer(value)) return `100644 blob ${blobOf(value)}`
    if (!isEntry(value)) return `040000 tree ${treeOf(value)}`
    const { mode, oid } = value
    const type = mode === '160000' ? 'commit' : mode === '040000' ? 'tree' : 'blob'
    return `${mode} ${type} ${oid ?? blobOf(value.content ?? '')}`
  }
  return {
    dir,
    git,
    commit(tree, branch = 'main') {
      const sha = git(['commit-tree', treeOf(tree), '-m', 'x'])
      git(['update-ref', `refs/heads/${branch}`, sha])
      return sha
    },
  }
}

const isEntry = (value: Entry | Tree): value is Entry => typeof value['mode'] === 'string' && value['mode'].length === 6

/** Commits so many files of so many bytes that nothing can pack, in programs of their own: it takes seconds. */
export async function commitNoise(repo: TestRepo, { files, bytes }: { files: number; bytes: number }): Promise<void> {
  const each = `printf 'M 100644 inline file-%s\\ndata ${bytes}\\n' "$file"; head -c ${bytes} /dev/urandom; echo`
  const commit = "printf 'commit refs/heads/main\\ncommitter a <a@example.com> 0 +0000\\ndata 1\\nx\\n'"
  const all = `{ ${commit}; for file in $(seq ${files}); do ${each}; done; }`
  const script = `git config core.compression 0; git config core.bigFileThreshold 100k; ${all} | git fast-import --quiet --force`
  await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: repo.dir, env: cleanEnvironment() })
}
