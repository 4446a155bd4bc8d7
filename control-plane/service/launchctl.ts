import { existsSync } from 'node:fs'
import { isDisabledIn, stateFromLaunchctl } from '../../shared/lib/launchd-words.ts'
import type { UnitState } from '../../shared/lib/unit-words.ts'
import type { World } from '../../shared/lib/world.ts'
import { OperatorError } from '../operator/people.ts'
import { serverLabel } from './server-plist.ts'
import { stopSeconds } from './server-unit.ts'
import type { RunTool, ServiceKeeper } from './system.ts'

const pollMs = 200

/** launchd, in the domain of a person who is logged in on the screen. */
export class Launchctl implements ServiceKeeper {
  readonly output: string
  private readonly run: RunTool
  private readonly file: string
  private readonly domain: string
  private readonly world: Pick<World, 'sleep' | 'monotonic'>

  constructor(
    run: RunTool,
    of: { file: string; outFile: string; uid: number; world: Pick<World, 'sleep' | 'monotonic'> },
  ) {
    this.run = run
    this.file = of.file
    this.domain = `gui/${of.uid}`
    this.world = of.world
    this.output = `tail ${of.outFile}`
  }

  private get target(): string {
    return `${this.domain}/${serverLabel}`
  }

  async reach(): Promise<void> {
    const { status, said } = await this.run('launchctl', ['print', this.domain])
    if (status === 0) return
    throw new OperatorError(
      `There is no session on the screen (${this.domain}) in which launchd could keep the server running: ${said} Log in on the screen of this Mac and type the command there.`,
    )
  }

  async begin({ isChanged }: { isChanged: boolean }): Promise<void> {
    await this.must('enable', this.target)
    if (isChanged) await this.unload()
    await ((
      await this.state()
    ).loaded
      ? this.must('kickstart', this.target)
      : this.must('bootstrap', this.domain, this.file))
  }

  end(): Promise<void> {
    return this.unload()
  }

  async forget(): Promise<void> {}

  async state(): Promise<UnitState> {
    const shown = await this.run('launchctl', ['print', this.target])
    const disabled = await this.run('launchctl', ['print-disabled', this.domain])
    return {
      ...stateFromLaunchctl(shown.status === 0 ? shown.stdout : null),
      enabled: existsSync(this.file) && !isDisabledIn(disabled.stdout, serverLabel),
    }
  }

  /** `bootout` answers before the job has ended, and a `bootstrap` in between fails. */
  private async unload(): Promise<void> {
    if (!(await this.state()).loaded) return
    const { said } = await this.run('launchctl', ['bootout', this.target])
    const giveUpAt = this.world.monotonic() + (stopSeconds + 15) * 1_000
    while ((await this.state()).loaded) {
      if (this.world.monotonic() > giveUpAt)
        throw new OperatorError(`launchd did not end ${this.target}: ${said} See: launchctl print ${this.target}`)
      await this.world.sleep(pollMs)
    }
  }

  private async must(...args: string[]): Promise<void> {
    const { status, said } = await this.run('launchctl', args)
    if (status !== 0) throw new OperatorError(`\`launchctl ${args.join(' ')}\` failed: ${said}`)
  }
}
