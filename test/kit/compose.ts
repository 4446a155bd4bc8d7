import { execFile } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { dataFiles } from '../../shared/lib/places.ts'
import { waitFor } from './programs.ts'
import { composeFolder, engineCommands } from './sandbox-engine.ts'
import { TestApi } from './system-api.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const composeFile = join(root, 'control-plane/deploy/compose.yaml')

/** What the compose file brings up on the tests' engine, with the settings that docs/deployment.md has an operator write. */
export class Deployment {
  readonly api: TestApi
  /** What the operator's file of settings says. */
  readonly settings: Record<string, string>
  readonly #folder: string
  #where: { url: string; token: string } | null = null

  constructor() {
    const { socket } = inject('sandboxEngine')!
    // A short path: the sockets of brokers lie below it.
    this.#folder = mkdtempSync(join(tmpdir(), 'svc-d-'))
    chownSync(this.#folder, 1000, 1000)
    this.settings = {
      COMPOSE_PROJECT_NAME: basename(this.#folder)
        .toLowerCase()
        .replace(/[^a-z0-9]/g, ''),
      SVC_POSTGRES_IMAGE: 'svc-test-postgres',
      SVC_POSTGRES_PASSWORD: crypto.randomUUID(),
      SVC_DATA_DIR: this.#folder,
      SVC_PUBLIC_URL: 'https://svc.example.com',
      SVC_LISTEN: '127.0.0.1:0',
      SVC_DRAIN_MS: '500',
      SVC_SANDBOX: 'docker',
      SVC_SANDBOX_SOCKET: socket,
      SVC_SANDBOX_GROUP: String(statSync(socket).gid),
    }
    this.api = new TestApi(() => this.#where!)
  }

  /** Runs compose, and returns what it printed. */
  async compose(...args: readonly string[]): Promise<string> {
    const { stdout } = await run(
      '/usr/bin/python3',
      [join(composeFolder, 'usr/bin/docker-compose'), '--file', composeFile, ...args],
      {
        env: {
          // `exec` is left to the docker command.
          PATH: `${engineCommands}:/usr/bin:/bin`,
          HOME: this.#folder,
          PYTHONPATH: join(composeFolder, 'usr/lib/python3/dist-packages'),
          DOCKER_HOST: `unix://${inject('sandboxEngine')!.socket}`,
          ...this.settings,
        },
      },
    )
    return stdout.trim()
  }

  /** Brings up what the settings say now, and waits until the server is ready. */
  async up(): Promise<void> {
    await this.compose('up', '--detach')
    const url = `http://${await this.compose('port', 'server', '4400')}`
    await waitFor(async () => (await fetch(`${url}/readyz`)).ok, 'a server that is ready', { ms: 60_000 })
    this.#where = { url, token: readFileSync(join(this.#folder, dataFiles.loginToken), 'utf8').trim() }
  }

  /** With all that it keeps. */
  async remove(): Promise<void> {
    await this.compose('down', '--volumes', '--timeout', '10')
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
