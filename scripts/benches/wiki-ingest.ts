import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Bench } from './context.ts'
import { atMost, compare } from './measure.ts'
import { size } from './sizes.ts'
import { startServer } from './stack.ts'

const run = promisify(execFile)
const files = size(2_000, 20)

/** Both are processes from their start to their end. */
export const wikiIngest: Bench = {
  name: 'wiki-ingest',
  about: `svc wiki ingest of ${files.toLocaleString('en')} unchanged files, against hashing them`,
  async run(context) {
    const server = await startServer(context, { name: 'wiki-ingest' })
    const dir = join(context.scratch, 'handbook')
    const home = join(context.scratch, 'ingest-home')
    mkdirSync(home)
    for (let n = 0; n < files; n++) {
      const folder = join(dir, `part-${n % 40}`)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, `page-${n}.md`), `# Page ${n}\n\n${`It says something of ${n}. `.repeat(150)}\n`)
    }
    const env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      SVC_CONFIG_DIR: home,
      SVC_API_URL: server.url,
      SVC_TOKEN: server.token,
    }
    const ingest = [join(context.dist, 'cli/main.js'), 'wiki', 'ingest', dir]
    const hasher = join(context.scratch, 'hash-files.mjs')
    writeFileSync(hasher, bare)
    try {
      await run(process.execPath, ingest, { env })
      const timed = (args: readonly string[]) => async () => {
        const start = performance.now()
        const { stdout } = await run(process.execPath, [...args], { env })
        if (!stdout.includes(String(files))) throw new Error(`not all files: ${stdout}`)
        return [performance.now() - start]
      }
      return [
        await compare({
          name: `svc wiki ingest, ${files.toLocaleString('en')} unchanged files`,
          unit: 'ms',
          peerIs: 'a process that reads and hashes them',
          target: atMost(2),
          rounds: Math.max(context.rounds, 5),
          ours: timed(ingest),
          peer: timed([hasher, dir]),
        }),
      ]
    } finally {
      await server.end()
    }
  },
}

const bare = `
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
const dir = process.argv[2]
const hashes = readdirSync(dir, { recursive: true })
  .filter((path) => path.endsWith('.md'))
  .map((path) => createHash('sha256').update(readFileSync(join(dir, path))).digest('hex'))
console.log(hashes.length)
`
