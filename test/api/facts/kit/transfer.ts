import type { Reply } from '../../../kit/server.ts'
import type { Stage } from '../../contract/stage.ts'
import { nobody, on, post } from './recipe.ts'
import type { CodeRecipe } from './resource-facts.ts'

/** Refusals of giving something to another owner. */
export function transferRecipes(route: string, pathOf: (stage: Stage) => Promise<string>): CodeRecipe[] {
  const transfer = async (stage: Stage, newOwnerId: string, token?: string): Promise<Reply> =>
    stage.server.call(`${await pathOf(stage)}/transfer-owner`, post({ newOwnerId }, token))
  return [
    on(route, '403 owner_transfer.forbidden', (stage) => transfer(stage, stage.member.userId, stage.member.token)),
    on(route, '409 owner_transfer.same_owner', (stage) => transfer(stage, stage.owner.userId)),
    on(route, '404 owner_transfer.user_not_found', (stage) => transfer(stage, nobody)),
  ]
}
