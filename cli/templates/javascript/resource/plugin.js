// {{description}}.

import { resource, TenonError } from "@tenon/sdk";

const PLANETS = ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"];

export const all = resource("planets://all", { description: "All planets, a line each.", handler: () => PLANETS.join("\n") });

export const planet = resource("planets://{number}", {
  description: "One planet, by its number from the sun.",
  complete: { number: PLANETS.map((_, index) => `${index + 1}`) },
  handler({ number }) {
    const name = PLANETS[Number(number) - 1];
    if (!name) throw new TenonError("not-found", `there is no planet ${number}`);
    return name;
  },
});
