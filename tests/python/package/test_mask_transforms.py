# SPDX-License-Identifier: Apache-2.0
"""Masks follow the operations of a loader as torchvision and Pillow do it, by nearest neighbour with the image's draw."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

import precache
import precache.tensorflow
import precache.torch
from precache import transforms as t
from torchvision_redo import Redo, pil, pixels

pytest_plugins = ("package_fixtures",)

COUNT = 20
MOVES = {"Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"}
COLOURS = (t.ColorJitter, t.RandomGrayscale, t.RandomErasing, t.GaussianBlur, t.RandomSolarize, t.RandomPosterize,
           t.RandomEqualize, t.RandomAutocontrast, t.RandomInvert, t.RandomAdjustSharpness)  # fmt: skip
POLICIES = (t.TrivialAugmentWide, t.RandAugment, t.AutoAugment)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Images of several sizes with masks of 7 classes, stretched to 24x30, with the column of their original sizes."""
    folder, rng = tmp_path_factory.mktemp("scenes"), np.random.default_rng(1)
    (folder / "images" / "a").mkdir(parents=True)
    (folder / "masks" / "a").mkdir(parents=True)
    for i in range(COUNT):
        height, width = rng.integers(20, 90, 2)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(folder / f"images/a/{i:02}.png")
        coarse = Image.fromarray(rng.integers(0, 7, (6, 7), np.uint8)).convert("P")
        coarse.resize((width, height), Image.Resampling.NEAREST).save(folder / f"masks/a/{i:02}.png")
    precache.build(folder / "images", folder / "out", mask=folder / "masks", size=(24, 30), fit="stretch",
                   shuffle=False, progress=False)  # fmt: skip
    dataset = precache.open(folder / "out")
    assert list(dataset.columns) == ["mask", "size"]
    return dataset


def for_mask(operation):
    """The operation as the mask has to see it."""
    if isinstance(operation, t.RandomApply):
        nothing = [t.CenterCrop((24, 30))]  # a RandomApply must have an operation, and this one draws nothing
        return dataclasses.replace(operation, transforms=of_masks(operation.transforms) or nothing)
    fields = {field.name for field in dataclasses.fields(operation)}
    return dataclasses.replace(operation, interpolation="nearest") if "interpolation" in fields else operation


def of_masks(operations):
    return [for_mask(operation) for operation in operations if not isinstance(operation, COLOURS)]


def draw_of_mask(draw):
    """The draw without operations and changes of colours."""
    colours = {colour.__name__ for colour in COLOURS}
    result = {name: value for name, value in draw.items() if name.partition("#")[0] not in colours}
    for name in result:
        if name == "TrivialAugmentWide" and result[name][0] not in MOVES:
            result[name] = ("Identity", 0)
        elif name in ("RandAugment", "AutoAugment"):
            result[name] = [step for step in result[name] if step[0] in MOVES]
    return result


LISTS = {
    "resized crop": [t.RandomResizedCrop((17, 40)), t.RandomHorizontalFlip()],
    "resize": [t.Resize((33, 41), "bicubic"), t.RandomCrop(29), t.RandomVerticalFlip()],
    "padded crop": [t.RandomCrop((24, 30), (4, 3, 2, 1), fill=99)],
    "reflected crop": [t.RandomCrop(20, 5, padding_mode="reflect")],
    "crop larger than the image": [t.RandomCrop((50, 60), pad_if_needed=True, fill=255)],
    "centre crop larger than the image": [t.CenterCrop((40, 20))],
    "quarter turns": [t.CenterCrop(21), t.RandomQuarterTurn()],
    "rotation": [t.RandomRotation(60, "bilinear", fill=7)],
    "affine": [t.RandomAffine(20, (0.1, 0.3), (0.7, 1.4), (-20, 10, -5, 15), "bilinear", 50)],
    "colours": [t.ColorJitter(0.5, 0.5, 0.5, 0.3), t.RandomGrayscale(0.5), t.RandomInvert(), t.GaussianBlur(3),
                t.RandomErasing(1.0)],
    "some of both": [t.RandomApply([t.RandomInvert(1.0), t.RandomHorizontalFlip(1.0)]), t.RandomApply([t.ColorJitter(0.4)]),
                     t.RandomResizedCrop(20), t.RandomHorizontalFlip(), t.RandomErasing(0.5)],
    "trivial": [t.TrivialAugmentWide()],
    "random": [t.RandAugment(3, 15, interpolation="bilinear", fill=3)],
    "learned": [t.AutoAugment()],
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_masks_are_those_of_pillow(scenes, name):
    operations = LISTS[name]
    loader = precache.Loader(scenes, 8, columns=["mask"], transform=operations)
    plain = precache.Loader(scenes, 8, transform=operations)
    stored = scenes.column("mask")
    for epoch in range(3):
        batches = list(loader)
        masks = np.concatenate([batch["mask"] for batch in batches])
        assert len(masks) == COUNT
        for batch, (images, _) in zip(batches, plain, strict=True):
            assert (batch["image"] == images).all()
        for i, mask in enumerate(stored):
            draw = loader.draw(i, epoch)
            expected = pixels(Redo(of_masks(operations), draw_of_mask(draw))(pil(mask[None])))
            assert masks[i].shape == expected.shape[1:] and (masks[i] == expected[0]).all(), draw


def mask_tensor(mask):
    return tv_tensors.Mask(torch.from_numpy(mask)[None])


@pytest.mark.parametrize(
    "operation, redo",
    [
        (t.RandomCrop(20), lambda mask, value: F.crop(mask, *value)),
        (t.RandomCrop(30, 6, fill=255), lambda mask, value: F.crop(F.pad(mask, 6, fill=255), *value)),
        (t.RandomCrop(30, 6, padding_mode="edge"), lambda mask, value: F.crop(F.pad(mask, 6, None, "edge"), *value)),
        (t.CenterCrop((40, 11)), lambda mask, value: F.center_crop(mask, [40, 11])),
        (t.RandomHorizontalFlip(), lambda mask, value: F.horizontal_flip(mask) if value else mask),
        (t.RandomVerticalFlip(), lambda mask, value: F.vertical_flip(mask) if value else mask),
    ],
    ids=["crop", "border", "edge", "centre", "mirrored", "flipped"],
)
def test_masks_are_those_of_torchvision(scenes, operation, redo):
    loader = precache.torch.Loader(scenes, 5, columns=["mask"], transform=[operation])
    stored = scenes.column("mask")
    for epoch in range(3):
        masks = torch.cat([batch["mask"] for batch in loader])
        for i, mask in enumerate(stored):
            draw = loader.draw(i, epoch)
            expected = redo(mask_tensor(mask), next(iter(draw.values()), None))
            assert isinstance(expected, tv_tensors.Mask)
            assert torch.equal(masks[i], expected[0])


def test_the_difference_from_torchvision_is_that_of_its_nearest_filters(scenes):
    """v2 resizes a Mask by NEAREST, which takes another pixel than Pillow does; NEAREST_EXACT takes Pillow's. Its
    rotation of tensors differs in pixels that lie between two."""
    stored, exact = scenes.column("mask"), v2.InterpolationMode.NEAREST_EXACT
    loader = precache.torch.Loader(scenes, 5, columns=["mask"], transform=[t.RandomResizedCrop((17, 40))])
    masks, half_a_pixel = torch.cat([batch["mask"] for batch in loader]), 0
    for i, mask in enumerate(stored):
        cropped = F.crop(mask_tensor(mask), *loader.draw(i, 0)["RandomResizedCrop"])
        assert torch.equal(masks[i], F.resize(cropped.as_subclass(torch.Tensor), [17, 40], exact)[0])
        half_a_pixel += not torch.equal(masks[i], F.resize(cropped, [17, 40])[0])
    assert half_a_pixel  # when it is 0, the documents can say that the masks are equal
    loader = precache.torch.Loader(scenes, 5, columns=["mask"], transform=[t.RandomRotation(60, fill=7)])
    masks = torch.cat([batch["mask"] for batch in loader])
    expected = torch.cat(
        [F.rotate(mask_tensor(mask), loader.draw(i, 0)["RandomRotation"], fill=7) for i, mask in enumerate(stored)]
    )
    assert (masks != expected).float().mean() < 0.02


def test_masks_follow_repeats_sizes_and_a_compose(scenes):
    """The images are enlarged classes, so that a mask shows the classes that are in its image."""
    compose = v2.Compose([v2.ToImage(), v2.RandomResizedCrop(16), v2.RandomHorizontalFlip(), v2.ColorJitter(0.3),
                          v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.5,) * 3, (0.2,) * 3)])  # fmt: skip
    options = {"columns": ["mask"], "transform": compose, "shuffle": True, "repeats": 2, "last_batch": "keep"}
    loader = precache.torch.Loader(scenes, 4, size={0: 8, 2: 12, 3: 20}, **options)
    stored = scenes.column("mask")
    for epoch, side in enumerate([8, 8, 12, 20]):
        seen = 0
        for batch in loader:
            assert batch["image"].shape[1:] == (3, side, side) and batch["mask"].shape[1:] == (side, side)
            assert batch["image"].dtype == torch.float32 and batch["mask"].dtype == torch.uint8
            for mask in batch["mask"].numpy():
                expected = (
                    pixels(Redo([t.RandomResizedCrop(side, interpolation="nearest"), t.RandomHorizontalFlip()],
                                draw_of_mask(loader.draw(i, epoch, repeat=repeat)))(pil(stored[i][None])))[0]
                    for i, repeat in itertools.product(range(COUNT), range(2))
                )  # fmt: skip
                seen += any((mask == each).all() for each in expected)
        assert seen == COUNT


def test_masks_have_their_own_fill(scenes):
    """As the segmentation recipe of torchvision pads: images with a colour, masks with the class to ignore."""
    operations = [t.RandomCrop((30, 36), 6, fill=(124, 116, 104)), t.CenterCrop((40, 40))]
    loader = precache.torch.Loader(scenes, 5, columns=["mask"], mask_fill=255, transform=operations)
    batches = list(loader)
    images = torch.cat([batch["image"] for batch in batches])
    masks = torch.cat([batch["mask"] for batch in batches])
    for i, stored in enumerate(scenes.column("mask")):
        top, left, height, width = loader.draw(i, 0)["RandomCrop"]
        padded = F.crop(F.pad(mask_tensor(stored), 6, fill=255), top, left, height, width)
        assert torch.equal(masks[i], F.pad(padded, [2, 5], fill=255)[0])
        assert (images[i][:, :5] == 0).all()
    with pytest.raises(precache.InvalidArgument, match="mask_fill must be .*got 256"):
        precache.Loader(scenes, 4, mask_fill=256)


def test_a_tf_dataset_has_masks_of_all_sizes(scenes):
    batches = precache.tensorflow.dataset(
        scenes, 4, columns=["mask"], transform=[t.RandomResizedCrop(16)], size={0: 8, 1: 12}, shuffle=True
    )
    for side in (8, 12):
        assert {tuple(batch["mask"].shape) for batch in batches} == {(4, side, side)}


def test_masks_that_cannot_follow_are_refused(scenes):
    flip = [t.RandomHorizontalFlip()]
    with pytest.raises(precache.InvalidArgument, match="columns= has the mask 'mask', but views= makes 2 images"):
        precache.Loader(scenes, 4, columns=["mask"], views=[flip, flip])
    with pytest.raises(precache.InvalidArgument, match="RandomCrop: fill= must have one value for images with a mask"):
        precache.Loader(scenes, 4, columns=["mask"], transform=[t.RandomCrop(20, 4, fill=(1, 2, 3))])
