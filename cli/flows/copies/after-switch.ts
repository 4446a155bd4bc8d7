import type { CommandContext } from '../../context/context.ts'
import {
  commandLines,
  daemonFrom,
  machineServicesFrom,
  restartByCurrent,
  restartServices,
  serverFrom,
  unitsOfOtherVersions,
} from '../../copies/running.ts'
import type { Prefix } from '../../copies/prefix.ts'

/** What a switch to another version did to what runs. */
export interface Switched {
  /** The device manager was restarted, and took up so many runs; null: none ran from here. */
  daemon: { runs: number } | null
  /** A server goes on with the version that it was started from, until somebody restarts it; null: none runs from here. */
  serverPid: number | null
  /** Versions that were removed. */
  removed: string[]
}

const nothingSwitched: Switched = { daemon: null, serverPid: null, removed: [] }

/** Where the version is installed already: an upgrade that was killed after its switch may have left device managers of the version before. */
export async function afterEarlierSwitch(prefix: Prefix, version: string, context: CommandContext): Promise<Switched> {
  const daemon = await daemonFrom(prefix.folder, context.env)
  const isLeft = daemon !== null && daemon.version !== version
  const units = await unitsOfOtherVersions(machineServicesFrom(prefix.folder), prefix.folder)
  return isLeft || units.length > 0 ? afterSwitch(prefix, context) : nothingSwitched
}

/** Restarts the daemon where it runs from this folder of versions: its run hosts go on, and the next one takes them up. */
export async function afterSwitch(prefix: Prefix, { env, out, world }: CommandContext): Promise<Switched> {
  const daemon = await daemonFrom(prefix.folder, env)
  if (daemon !== null) await restartByCurrent(prefix)
  const services = machineServicesFrom(prefix.folder)
  const trouble = await restartServices(services)
  if (trouble !== null) out.message(`svc: warning: ${trouble} Type: systemctl restart ${services.join(' ')}`)
  else if (services.length > 0) out.message(`svc: restarted ${services.join(', ')}; runs go on.`)
  const server = await serverFrom(prefix.folder, env)
  if (server !== null) {
    const how = server.unit === null ? '' : `: systemctl restart ${server.unit}`
    out.message(`svc: the server (process ${server.pid}) goes on as it was; restart it when you like${how}.`)
  }
  return {
    daemon: daemon === null ? null : { runs: daemon.runs },
    serverPid: server?.pid ?? null,
    removed: prefix.removeOld(commandLines(), world.now()),
  }
}
