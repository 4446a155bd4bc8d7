import type { DeviceRow } from '../../resources/devices/store.ts'
import { devicePlace } from './device.ts'
import type { RunFacts, RunPlace } from './place.ts'
import { sandboxPlace } from './sandbox.ts'

/** The place that an agent, a wake or a run asks for. */
export const placeOfEnvironment = (environment: 'device' | 'cloud'): RunPlace =>
  environment === 'cloud' ? sandboxPlace : devicePlace

export const placeOfRun = ({ cloud }: Pick<RunFacts, 'cloud'>): RunPlace =>
  cloud === null ? devicePlace : sandboxPlace

/** The place that holds a link. */
export const placeOfDevice = ({ sandboxId }: Pick<DeviceRow, 'sandboxId'>): RunPlace =>
  sandboxId === null ? devicePlace : sandboxPlace
