import type { KilledHosts } from './killed-hosts.ts'
import { delay } from './programs.ts'
import type { TestSystem } from './system.ts'

// What happens to machines and networks, done to a system of real programs at moments that a seed draws.

/** What a fault takes away for a while. */
export type Absent = 'link' | 'server' | 'daemon' | 'disk' | 'host'

export interface FaultOptions {
  system: TestSystem
  random: () => number
  killed: KilledHosts
  /** The longest time for which a program is dead or asleep, or a wire is cut. */
  longestMs: { death: number; cut: number; sleep: number }
  /** Is told when something goes; what it returns is called when that is back. */
  gone?: (what: Absent) => () => void
}

/** Resolves when what the fault took away is back. */
export type Fault = () => Promise<void>

export function faultsOf(options: FaultOptions) {
  const { system, random, killed, longestMs, gone = () => () => undefined } = options
  const wait = (ms: number) => delay(random() * ms)
  /** Each has to return, whatever goes wrong meanwhile. */
  const without = async (what: Absent, during: () => Promise<unknown>) => {
    const back = gone(what)
    await during()
    back()
  }
  const wire = (take: () => void) =>
    without('link', async () => {
      take()
      await wait(longestMs.cut)
      system.proxy.heal()
    })
  const asleep = (what: Absent, program: { signal(name: NodeJS.Signals): void }) =>
    without(what, async () => {
      program.signal('SIGSTOP')
      await wait(longestMs.sleep)
      program.signal('SIGCONT')
    })
  const anyHost = () => anyOf(system.device.hosts(), random)
  return {
    daemon: () =>
      without('daemon', async () => {
        await system.device.kill9()
        killed.addDaemon()
        await wait(longestMs.death)
        system.device.launch()
      }),
    /** A load balancer has those next that are there. */
    server: () =>
      without('server', async () => {
        const server = anyOf(system.servers, random)!
        await server.kill9()
        const others = system.servers.filter((each) => each !== server)
        system.routeTo(anyOf(others, random) ?? server)
        await wait(longestMs.death)
        await server.start()
      }),
    /** The connection ends, and the next one leads to any replica. */
    reroute: () =>
      wire(() => {
        system.routeTo(anyOf(system.servers, random)!)
        system.proxy.cut()
      }),
    cut: () => wire(() => system.proxy.cut()),
    halfOpen: () => wire(() => system.proxy.blackHole()),
    host: async () => {
      const host = anyHost()
      if (host !== undefined && kill(host.pid, 'SIGKILL')) killed.add(host)
    },
    daemonAsleep: () => asleep('daemon', system.device.program),
    serverAsleep: () => asleep('server', anyOf(system.servers, random)!.program),
    hostAsleep: async () => {
      const host = anyHost()
      if (host !== undefined) await asleep('host', { signal: (name) => void kill(host.pid, name) })
    },
    fullDisk: () =>
      without('disk', async () => {
        system.device.disk.fill()
        await wait(longestMs.cut)
        system.device.disk.free()
      }),
  } satisfies Record<string, Fault>
}

export const anyOf = <Value>(values: readonly Value[], random: () => number): Value | undefined =>
  values[Math.floor(random() * values.length)]

/** False: it ended by itself just now. */
function kill(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
