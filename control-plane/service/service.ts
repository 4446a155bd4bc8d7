import { existsSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { dataFiles } from '../../shared/lib/places.ts'
import { isPassingPath, stableMainPath, stableNodePath } from '../../shared/lib/stable-paths.ts'
import { isProgramOfUnit } from '../../shared/lib/unit-words.ts'
import type { World } from '../../shared/lib/world.ts'
import { OperatorError } from '../operator/people.ts'
import { makeFolder } from '../process/make-folder.ts'
import { Launchctl } from './launchctl.ts'
import { serverPlistText } from './server-plist.ts'
import { environmentText, serverUnitText, type ServerUnit } from './server-unit.ts'
import {
  listeningAddress,
  closedOnTheWayTo,
  replaceServiceFile,
  Systemctl,
  textIn,
  type RunTool,
  type ServiceKeeper,
  type ServicePlaces,
} from './system.ts'

// The server as a service of systemd: of the machine where root types the commands, else of the person; on macOS of launchd, of the person.

export interface ServiceSetup {
  places: ServicePlaces
  run: RunTool
  world: Pick<World, 'sleep' | 'monotonic'>
  platform: string
  execPath: string
  main: string
  /** The PATH of the shell. */
  path: string
  home: string
  uid: number
}

/** The account of a system service, unless another one is named. */
const ownAccount = 'svc'

const startMs = 60_000
const pollMs = 250

/** Installs the service, or brings it up to date, and starts it. What the operator wrote into the file of settings stays. */
export async function installService(setup: ServiceSetup, user: string | null): Promise<object> {
  const { places } = setup
  mustHaveServices(setup)
  if (!places.isOfSystem && user !== null)
    throw new OperatorError('--user is for a service of the machine: type the command as root.')
  if (user !== null && !/^[a-z_][a-z0-9_-]{0,31}$/.test(user))
    throw new OperatorError(`${user} is no name of an account.`)
  const keeper = keeperOf(setup)
  await keeper.reach()
  const program = programOf(setup)
  if (places.isOfSystem) for (const each of Object.values(program)) mustBeOpen(each)
  const account = places.isOfSystem ? await haveAccount(setup, user) : null
  const text = textOf(setup, { ...program, ...places, path: servicePath(setup.path), user: account })
  if (textIn(places.environmentFile) === null) replaceServiceFile(places.environmentFile, environmentText, 0o600)
  const before = textIn(places.unitFile)
  const changed = before !== text
  if (changed) replaceServiceFile(places.unitFile, text, 0o644)
  await keeper.begin({ isChanged: changed && before !== null })
  const { pid, url } = await started(setup, keeper)
  const { unitFile, environmentFile, dataDir } = places
  const warnings = Object.values(program)
    .filter(isPassingPath)
    .map((each) => `An update will remove ${each}: type the command again after it.`)
  return { unit: unitFile, user: account, environmentFile, dataDir, changed, pid, url, warnings }
}

/** Ends the server and takes the unit away. State, settings and the account stay. */
export async function uninstallService(setup: ServiceSetup): Promise<object> {
  const { places } = setup
  mustHaveServices(setup)
  const { unitFile, environmentFile, dataDir } = places
  const kept = [environmentFile, dataDir].filter((path) => existsSync(path))
  if (!existsSync(unitFile)) return { unit: unitFile, changed: false, kept }
  const keeper = keeperOf(setup)
  await keeper.reach()
  await keeper.end()
  rmSync(unitFile)
  await keeper.forget()
  return { unit: unitFile, changed: true, kept }
}

export async function serviceStatus(setup: ServiceSetup): Promise<object> {
  const { places } = setup
  mustHaveServices(setup)
  const { unitFile, dataDir } = places
  if (!existsSync(unitFile)) return { unit: unitFile, installed: false }
  const { enabled, running, failed, pid } = await keeperOf(setup).state()
  return { unit: unitFile, installed: true, enabled, running, failed, pid, url: listeningAddress(dataDir, pid) }
}

function mustHaveServices({ platform, places }: ServiceSetup): void {
  if (platform === 'darwin' && places.isOfSystem)
    throw new OperatorError(
      'On macOS the server is a service of a person. Type the command as that person, without sudo.',
    )
  if (platform !== 'linux' && platform !== 'darwin')
    throw new OperatorError(
      `There is no service of the server for ${platform}. Let a supervisor of your own keep \`svc-server start\` running, which must not start it again after status 78.`,
    )
}

const outFileOf = ({ dataDir }: ServicePlaces) => join(dataDir, dataFiles.serverOut)

function keeperOf({ platform, places, run, uid, world }: ServiceSetup): ServiceKeeper {
  if (platform !== 'darwin') return new Systemctl(run, places)
  return new Launchctl(run, { file: places.unitFile, outFile: outFileOf(places), uid, world })
}

function textOf({ platform, places, home }: ServiceSetup, unit: ServerUnit): string {
  if (platform !== 'darwin') return serverUnitText(unit)
  // launchd makes the file that takes the output, and not its folder.
  makeFolder(places.dataDir)
  return serverPlistText(unit, { homeDir: home, outFile: outFileOf(places) })
}

function programOf({ execPath, main, path, platform }: ServiceSetup): { node: string; main: string } {
  const node = stableNodePath(execPath, path, realPathOf)
  if (platform === 'linux' && !isProgramOfUnit(node))
    throw new OperatorError(`systemd starts no program in a folder with a quote or backslash in its name: ${node}`)
  return { node, main: stableMainPath(main, realPathOf) }
}

function realPathOf(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

function mustBeOpen(path: string): void {
  const closed = closedOnTheWayTo(path)
  if (closed === null) return
  throw new OperatorError(
    `The account of the service may not read ${path}: ${closed} is closed to others. Put svc and its Node where all may read them, such as /opt/svc.`,
  )
}

/** What the shell of root finds in home folders, the service may not enter. */
const servicePath = (path: string): string =>
  [
    ...new Set([
      ...path.split(':').filter((each) => /^\/(?!root|home)/.test(each)),
      '/usr/local/bin',
      '/usr/bin',
      '/bin',
    ]),
  ].join(':')

/** Makes the account of the server, where no other one is named. */
async function haveAccount({ run, places }: ServiceSetup, user: string | null): Promise<string> {
  const name = user ?? ownAccount
  const has = async () => (await run('id', ['-u', name])).status === 0
  if (await has()) return name
  if (user !== null) throw new OperatorError(`There is no account ${name}. Leave --user out, and one is made.`)
  replaceServiceFile(places.accountFile!, `u ${name} - "svc control plane" ${places.dataDir}\n`, 0o644)
  const { said } = await run('systemd-sysusers', [places.accountFile!])
  if (await has()) return name
  throw new OperatorError(`The account ${name} could not be made: ${said}`)
}

async function started({ places, world }: ServiceSetup, keeper: ServiceKeeper): Promise<{ pid: number; url: string }> {
  const giveUpAt = world.monotonic() + startMs
  for (;;) {
    const { pid, failed } = await keeper.state()
    const url = listeningAddress(places.dataDir, pid)
    if (pid !== null && url !== null) return { pid, url }
    if (failed !== null || world.monotonic() > giveUpAt) {
      const how = failed === null ? `does not listen after ${startMs / 1000} s` : `ended (${failed})`
      throw new OperatorError(
        `The service is installed, and its server ${how}. See: ${keeper.output}. Settings: ${places.environmentFile}`,
      )
    }
    await world.sleep(pollMs)
  }
}
