import { homedir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { programUrl } from '../../shared/lib/program-file.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { installService, serviceStatus, uninstallService, type ServiceSetup } from './service.ts'
import { runTool, servicePlaces } from './system.ts'

// `svc-server install-service` and the like; each prints one line of JSON.

export const printInstalled = async (dataDir: string, user: string | undefined): Promise<void> =>
  print(await installService(setupOf(dataDir), user ?? null))

export const printUninstalled = async (dataDir: string): Promise<void> =>
  print(await uninstallService(setupOf(dataDir)))

export const printServiceStatus = async (dataDir: string): Promise<void> => print(await serviceStatus(setupOf(dataDir)))

/** `dataDir`: that of a person's own service. */
function setupOf(dataDir: string): ServiceSetup {
  return {
    places: servicePlaces({
      isOfSystem: process.getuid?.() === 0,
      home: homedir(),
      dataDir,
      platform: process.platform,
    }),
    home: homedir(),
    uid: process.getuid?.() ?? 0,
    run: runTool,
    world: realWorld,
    platform: process.platform,
    execPath: process.execPath,
    main: fileURLToPath(programUrl('control-plane')),
    path: process.env['PATH'] ?? '',
  }
}

function print(result: object): void {
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
