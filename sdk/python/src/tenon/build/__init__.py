"""Builds the component of a plugin's folder: `tenon build` runs `python -m tenon.build --output FILE`.

The builder, the WIT in `wit` and the rest of the package are of one version. The package goes into
the component without this part and without `tenon.testing`.

One step follows another: `project` reads the folder, `dependencies` installs, `description` asks what
the source contributes, `unavailable` warns of what no component can do, `world` writes the WIT for it, `componentize` makes the component, and
`sections` removes what no host needs.
"""
