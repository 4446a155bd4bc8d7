import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nothingNames } from './programs.ts'
import { TestDevice } from './system-device.ts'
import { ScriptedServer } from './system-scripted-server.ts'

/** A real daemon that is linked to a control plane which the test plays. */
export interface ScriptedSystem {
  root: string
  server: ScriptedServer
  device: TestDevice
  /** Ends both, fails when something of them lives on, and removes all files. */
  stop(): Promise<void>
}

interface ScriptedOptions {
  /** Lays down what the daemon is to find when it starts. */
  prepare?: (made: Pick<ScriptedSystem, 'root' | 'device'>) => void
  isWalled?: boolean
}

export async function startScripted(
  name: string,
  { prepare = () => undefined, isWalled = false }: ScriptedOptions = {},
): Promise<ScriptedSystem> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `svc-${name}-`)))
  const server = await ScriptedServer.start()
  const env = { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' }
  const device = new TestDevice({ name: 'device', root, env, isWalled })
  prepare({ root, device })
  device.identify({ publicId: 'dvc_1', deviceId: 'd', token: 'svc_dev_x', displayName: 'device', server: server.url })
  await device.start()
  return {
    root,
    server,
    device,
    async stop() {
      await device.end()
      await server.stop()
      await nothingNames(root)
      await device.cleanUp()
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
