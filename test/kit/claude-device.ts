import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realWorld } from '../../shared/lib/world.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { nothingNames } from './programs.ts'
import { signInClaude } from './real-claude.ts'
import { fetchHarness } from './real-harness.ts'
import { runSpecFixture } from './run-spec.ts'
import { startStubLlm, type StubLlm } from './stub-llm.ts'
import { TestDevice } from './system-device.ts'
import { ScriptedServer } from './system-scripted-server.ts'

/**
 * The real daemon with its run hosts and the real Claude Code; the control plane and the model's server are played by the
 * test.
 */
export class ClaudeDevice {
  readonly root: string
  /** The runs' folder. */
  readonly folder: string
  readonly stub: StubLlm
  readonly server: ScriptedServer
  readonly device: TestDevice

  private constructor(parts: Pick<ClaudeDevice, 'root' | 'folder' | 'stub' | 'server' | 'device'>) {
    this.root = parts.root
    this.folder = parts.folder
    this.stub = parts.stub
    this.server = parts.server
    this.device = parts.device
  }

  /** `missing`: why claude cannot be had here; it is said loudly. */
  static async start(): Promise<ClaudeDevice | { missing: string }> {
    const found = fetchHarness('claude')
    if ('missing' in found) {
      process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${found.missing}\n\n`)
      return found
    }
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-claude-')))
    const folder = join(root, 'work')
    mkdirSync(folder)
    const stub = await startStubLlm()
    const server = await ScriptedServer.start()
    const device = new TestDevice({ name: 'device', root, env: {}, isWalled: true })
    signInClaude(device.homeDir, { binDir: found.binDir, modelUrl: `${stub.url}/s/run` })
    device.identify({ publicId: 'dvc_1', deviceId: 'd', token: 'svc_dev_x', displayName: 'device', server: server.url })
    await device.start()
    return new ClaudeDevice({ root, folder, stub, server, device })
  }

  /** Runs to the end; what the headers of its frames asked goes with the report. */
  async play(change: Partial<RunSpec>) {
    const lease = { runId: realWorld.id('run_'), fence: 1 }
    const spec = runSpecFixture(lease.runId, {
      harness: 'claude',
      command: null,
      folder: { shortId: 'fs_1', rootPath: this.folder },
      ...change,
    })
    const report = await this.server.play(lease, spec)
    const headers = this.server.events.filter(({ runId }) => runId === lease.runId)
    return { report, told: headers.flatMap(({ approvals }) => approvals ?? []) }
  }

  async stop(): Promise<void> {
    await this.device.end()
    await this.server.stop()
    await this.stub.stop()
    await nothingNames(this.root)
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 })
  }
}
