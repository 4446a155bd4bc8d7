import { makeHome, type Finished, type Running } from '../cli/run-svc.ts'
import type { TestDevice } from '../kit/system-device.ts'
import type { TestSystem } from '../kit/system.ts'

/** A person who signs in with svc, connects their machine by it, and reads by it what the machine does. */
export interface DeviceOwner {
  device: TestDevice
  /** Returns what svc printed; fails where it fails. */
  text: (...line: string[]) => Promise<string>
  /** The same, of a command that prints one line of JSON. */
  json: (...line: string[]) => Promise<unknown>
  /** `svc run events RUN --follow` */
  follow: (runId: string) => Running
  remove: () => void
}

/** The svc is of the programs that the devices of the system have. */
export async function deviceOwner(system: TestSystem, server = system.server): Promise<DeviceOwner> {
  const device = system.makeDevice()
  const home = makeHome(device.programs)
  const followers: Running[] = []
  const env = { SVC_STATE_DIR: device.stateDir }
  const text = async (...line: string[]) => said(line, await home.svc(line, { env }))
  const login = ['login', '--server', server.url, '--token', '-']
  said(login, await home.svc(login, { input: server.token }))
  await device.connect(home.env['SVC_CONFIG_DIR']!)
  return {
    device,
    text,
    json: async (...line) => JSON.parse(await text(...line)) as unknown,
    follow(runId) {
      const follower = home.start(['run', 'events', runId, '--follow'])
      followers.push(follower)
      return follower
    },
    remove() {
      for (const { child } of followers) child.kill()
      home.remove()
    },
  }
}

function said(line: readonly string[], { status, stdout, stderr }: Finished): string {
  if (status !== 0) throw new Error(`svc ${line.join(' ')} ended with ${status}: ${stderr}`)
  return stdout
}
